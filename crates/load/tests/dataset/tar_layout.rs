//! Archives whose file names or layout do not match the configuration.

use pinlane::load::{Dataset, Dtype, Field, LoadError, LoadErrorKind, Tar, TarConfig, TarError};

use super::support::{Scratch, entry, sample, sample_fault};

/// Fields of one byte, for files with these extensions.
fn config(extensions: &[&str]) -> TarConfig {
    let field = |config: TarConfig, extension: &&str| {
        config.field(*extension, Field::fixed(*extension, Dtype::U8, [1]))
    };
    extensions.iter().fold(TarConfig::new(), field)
}

/// An archive of files of one byte, which is the first of their name.
fn archive(names: &[&str]) -> Vec<u8> {
    let entry = |name: &&str| entry(b'0', name.as_bytes(), &name.as_bytes()[..1]);
    names.iter().flat_map(entry).collect()
}

fn open(archives: &[&[&str]], extensions: &[&str]) -> Result<Tar, LoadError> {
    let scratch = Scratch::new();
    let file = |(at, names): (usize, &&[&str])| scratch.file(&format!("{at}.tar"), archive(names));
    let paths: Vec<_> = archives.iter().enumerate().map(file).collect();
    let opened = Tar::open(&paths, config(extensions));
    if let Err(error) = &opened {
        let file = (paths.len() == 1).then_some(paths[0].as_path());
        assert_eq!(error.file(), file);
    }
    opened
}

#[test]
fn a_leading_dot_of_an_extension_is_ignored() {
    let names = ["a.jpg", "a.seg.png", "b.JPG", "b.seg.png"];
    let scratch = Scratch::new();
    let path = scratch.file("a.tar", archive(&names));
    for extensions in [
        ["jpg", "seg.png"],
        [".jpg", ".seg.png"],
        [".JPG", "seg.PNG"],
    ] {
        let tar = Tar::open([&path], config(&extensions)).expect("a good archive");
        assert_eq!(sample(&tar, 1), [b"b", b"b"]);
    }
}

#[test]
fn an_unknown_extension_lists_the_known_ones() {
    let unknown = |archives: &[&[&str]], extensions: &[&str]| {
        let error = open(archives, extensions).expect_err("no such extension");
        match error.kind().clone() {
            LoadErrorKind::Tar(TarError::NoSuchExtension { extension, others }) => {
                (extension, others.join(" "))
            }
            other => panic!("{other}"),
        }
    };
    let found = |extension: &str, others: &str| (extension.to_owned(), others.to_owned());
    let names: &[&str] = &["a.jpeg", "a.cls", "b.JPEG", "b.cls"];
    assert_eq!(unknown(&[names], &["cls", "jpg"]), found("jpg", "cls jpeg"));
    assert_eq!(unknown(&[names], &[".jpg"]), found("jpg", "cls jpeg"));
    let other: &[&str] = &["a.png", "a.cls"];
    let all = found("txt", "cls jpeg png");
    assert_eq!(unknown(&[names, other], &["cls", "txt"]), all);
    // One archive that has it is enough; samples of the others lack it.
    let tar = open(&[names, other], &["cls", "png"]).expect("there are such files");
    assert_eq!(tar.len(), 3);

    let error = open(&[names], &["jpg"]).expect_err("no such extension");
    let text = "no sample has a file with the extension \"jpg\"; there are \"cls\", \"jpeg\"";
    assert!(error.to_string().ends_with(text), "{error}");
}

#[test]
fn archives_without_samples_need_no_extensions() {
    assert_eq!(open(&[&[]], &["jpg"]).expect("empty").len(), 0);
    assert_eq!(open(&[&["plain"]], &["jpg"]).expect("no sample").len(), 0);
}

/// The error stays short, whatever is in the archive.
#[test]
fn many_long_extensions() {
    let names: Vec<String> = (0..500)
        .map(|at| format!("a.{at:03}{}", "\u{1}".repeat(90)))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let error = open(&[&names], &["jpg"]).expect_err("no such extension");
    let text = error.to_string();
    assert!(text.len() < 2500 && !text.contains(char::is_control));
    let LoadErrorKind::Tar(TarError::NoSuchExtension { others, .. }) = error.kind() else {
        panic!("{error}");
    };
    assert_eq!(others.len(), 8);
}

#[test]
fn scattered_files_of_a_sample_are_reported() {
    let scattered = |entry: &str| {
        LoadErrorKind::Tar(TarError::Scattered {
            entry: entry.to_owned(),
        })
    };
    let missing = |entry: &str| {
        LoadErrorKind::Tar(TarError::Missing {
            entry: entry.to_owned(),
        })
    };
    let scratch = Scratch::new();
    // All images, then all labels: the order of `find` or an unsorted folder.
    let names = ["1.jpg", "2.jpg", "3.jpg", "1.cls", "2.cls", "4.cls"];
    let path = scratch.file("a.tar", archive(&names));
    let tar = Tar::open([&path], config(&["jpg", "cls"])).expect("a good archive");
    assert_eq!(tar.len(), 6);
    for (at, fault) in [
        scattered("1.cls"),
        scattered("2.cls"),
        missing("3.cls"),
        scattered("1.jpg"),
        scattered("2.jpg"),
        missing("4.jpg"),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(sample_fault(&tar, at), fault);
    }
    let text = sample_fault(&tar, 0).to_string();
    assert!(text.contains("tar --sort=name"), "{text}");

    // With one of both fields, half of the samples are missing it.
    let tar = Tar::open([&path], config(&["jpg"])).expect("a good archive");
    assert_eq!(sample(&tar, 0), [b"1"]);
    assert_eq!(sample_fault(&tar, 3), scattered("1.jpg"));
    assert_eq!(sample_fault(&tar, 5), missing("4.jpg"));
}

//! Archives written by GNU tar and Python's `tarfile`, in every format.

use std::fs;
use std::path::PathBuf;

use pinlane::load::{Dataset, Dtype, Field, LoadErrorKind, SampleMut, Tar, TarConfig, TarError};

use super::allocation_counter::allocations;
use super::support::{Scratch, data, entry, from_hex, read, sample, sample_fault};

pub fn config() -> TarConfig {
    TarConfig::new()
        .field("jpg", Field::variable("image", Dtype::U8, 700))
        .field("cls", Field::variable("label", Dtype::U8, 1))
}

/// The archives, by name.
pub fn archives() -> Vec<PathBuf> {
    let list = fs::read_dir(data().join("tar")).expect("the folder");
    let paths = list.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "tar"))
        .collect();
    paths.sort();
    assert_eq!(paths.len(), 8);
    paths
}

/// A sample as `tarfile` finds it: archive, key, image, label.
#[derive(Default, Debug)]
struct Expected {
    archive: String,
    key: String,
    image: Vec<u8>,
    label: Vec<u8>,
}

fn expected() -> Vec<Expected> {
    let text = fs::read_to_string(data().join("archives.tsv")).expect("the list");
    let mut samples: Vec<Expected> = Vec::new();
    for line in text.lines() {
        let [archive, key, extension, hex] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("four columns: {line}");
        };
        let same = |last: &Expected| last.archive == archive && last.key == key;
        if !samples.last().is_some_and(same) {
            samples.push(Expected {
                archive: archive.to_owned(),
                key: key.to_owned(),
                ..Expected::default()
            });
        }
        let last = samples.last_mut().expect("there is one");
        match extension.to_ascii_lowercase().as_str() {
            "jpg" => last.image = from_hex(hex),
            "cls" => last.label = from_hex(hex),
            other => assert_eq!(other, "seg.png"),
        }
    }
    samples
}

#[test]
fn every_format_matches_python_tarfile() {
    let expected = expected();
    let tar = Tar::open(archives(), config()).expect("good archives");
    assert_eq!(tar.len(), expected.len());
    assert!(tar.len() > 35);
    for (index, expected) in expected.iter().enumerate().rev() {
        let found = sample(&tar, index);
        assert_eq!(
            found,
            [expected.image.as_slice(), &expected.label],
            "{index}"
        );
        let source = tar.origin(index);
        let key: String = expected.key.chars().take(200).collect();
        assert!(
            source.contains(&expected.archive) && source.contains(&key),
            "{source}"
        );
    }
}

#[test]
fn a_folder_stands_for_its_archives() {
    let from_folder = Tar::open([data().join("tar")], config()).expect("good archives");
    let one_by_one = Tar::open(archives(), config()).expect("good archives");
    assert_eq!(from_folder.len(), one_by_one.len());
    let last = from_folder.len() - 1;
    assert_eq!(from_folder.origin(last), one_by_one.origin(last));
    let nothing = Scratch::new();
    nothing.file(".hidden.tar", entry(b'0', b"a.cls", b"1"));
    let error = Tar::open([nothing.path()], config()).expect_err("no archives");
    assert_eq!(
        (error.kind(), error.file()),
        (
            &LoadErrorKind::Tar(TarError::NoArchives),
            Some(nothing.path())
        )
    );
}

/// More archives than are kept open.
#[test]
fn many_archives() {
    let scratch = Scratch::new();
    let paths: Vec<PathBuf> = (0..300)
        .map(|number: u16| {
            let name = format!("{number:03}.cls");
            let data = number.to_le_bytes();
            scratch.file(
                &format!("{number:03}.tar"),
                entry(b'0', name.as_bytes(), &data),
            )
        })
        .collect();
    let config = TarConfig::new().field("cls", Field::fixed("n", Dtype::U16, []));
    let tar = Tar::open(&paths, config).expect("good archives");
    assert_eq!(tar.len(), 300);
    for number in [299, 0, 150_u16] {
        assert_eq!(sample(&tar, usize::from(number)), [number.to_le_bytes()]);
    }
    scratch.file("150.tar", entry(b'0', b"other.cls", b"xyz"));
    assert_eq!(sample_fault(&tar, 150), LoadErrorKind::FileChanged);
}

/// Keys, extensions, and ignored files.
#[test]
fn names_are_split_like_webdataset() {
    let parts: [(&[u8], &[u8]); 9] = [
        (b"__meta__/info.cls", b"x"),
        (b"a/.hidden.cls", b"x"),
        (b"a/plain", b"x"),
        (b"a.b/1.cls", b"1"),
        (b"a.b/1.old.cls", b"x"),
        (b"a.c/1.cls", b"2"),
        (b"./1.CLS", b"3"),
        (b"\xff\xfe.cls", b"4"),
        (b"1.cls", b"5"),
    ];
    let entries = parts.map(|(name, data)| entry(b'0', name, data));
    let scratch = Scratch::new();
    let path = scratch.file("a.tar", entries.concat());
    let config = TarConfig::new().field("cls", Field::fixed("label", Dtype::U8, [1]));
    let tar = Tar::open([path], config).expect("a good archive");
    let labels: Vec<u8> = (0..tar.len()).map(|at| sample(&tar, at)[0][0]).collect();
    assert_eq!(labels, b"12345");
    assert!(tar.origin(0).ends_with("\"a.b/1\""), "{}", tar.origin(0));
}

#[test]
fn bad_samples_have_different_errors() {
    let parts: [(&str, &[u8]); 6] = [
        ("0.num", &[0; 4]),
        ("0.text", &[0; 6]),
        ("1.num", &[0; 4]),
        ("2.num", &[0; 5]),
        ("2.text", &[0; 6]),
        ("3.text", &[0; 7]),
    ];
    let mut archive = parts
        .map(|(name, data)| entry(b'0', name.as_bytes(), data))
        .concat();
    archive.extend(entry(b'0', b"4.num", &[0; 4]));
    archive.extend(entry(b'0', b"4.text", &[0; 10]));
    archive.extend(entry(b'0', b"3.num", &[0; 4])); // another sample: it does not follow the first
    let scratch = Scratch::new();
    let path = scratch.file("a.tar", archive);
    let config = TarConfig::new()
        .field("num", Field::fixed("number", Dtype::U32, []))
        .field("text", Field::variable("text", Dtype::U16, 4));
    let tar = Tar::open([&path], config).expect("a good archive");
    assert_eq!(tar.len(), 6);
    assert_eq!(sample(&tar, 0), [vec![0; 4], vec![0; 6]]);
    let missing = |entry: &str| {
        LoadErrorKind::Tar(TarError::Missing {
            entry: entry.to_owned(),
        })
    };
    assert_eq!(sample_fault(&tar, 1), missing("1.text"));
    let length = |index| match sample_fault(&tar, index) {
        LoadErrorKind::Tar(TarError::Length { entry, bytes, .. }) => (entry, bytes),
        other => panic!("{other}"),
    };
    assert_eq!(length(2), ("2.num".to_owned(), 5));
    let scattered = |entry: &str| {
        LoadErrorKind::Tar(TarError::Scattered {
            entry: entry.to_owned(),
        })
    };
    assert_eq!(sample_fault(&tar, 3), scattered("3.num"));
    assert_eq!(length(4), ("4.text".to_owned(), 10));
    assert_eq!(sample_fault(&tar, 5), scattered("3.text"));
    let text = read(&tar, 2).expect_err("five bytes").to_string();
    assert!(text.contains("a.tar: \"2.num\" has 5 bytes"), "{text}");
    assert!(
        text.ends_with("but the field \"number\" is U32 []"),
        "{text}"
    );
}

#[test]
fn reading_allocates_nothing() {
    let tar = Tar::open(archives(), config()).expect("good archives");
    let (mut image, mut label) = ([0; 700], [0; 1]);
    let mut place = SampleMut::new();
    place.push(&tar.fields()[0], &mut image);
    place.push(&tar.fields()[1], &mut label);
    let (read, times) = allocations(|| (0..tar.len()).try_for_each(|at| tar.read(at, &mut place)));
    read.expect("good samples");
    assert_eq!(times, 0);
}

//! `pinlane feed` of samples and files that are not as they should be.

#[path = "support/feeding.rs"]
mod feeding;
#[path = "support/scratch.rs"]
mod scratch;
mod support;

use feeding::{data, feed, refused, report};
use scratch::Scratch;
use serde_json::Value;
use support::{run, stderr, stdout};

#[test]
fn bad_samples_fail_or_are_skipped() {
    let archive = data("tar/gnu-ustar.tar");
    // One file is empty, and one field has another length.
    let words = [archive.as_str(), "--field", "cls=u8:1"];
    refused(&words, 1, &["train/0002", "--skip-bad"]);
    let all = report(&[&archive, "--field", "jpg=u8:..1000"]);
    let found = report(&[&words[..], &["--skip-bad"]].concat());
    let number = |value: &Value| value.as_u64().expect("a number");
    assert!(number(&found["skipped"]) > 0);
    assert_eq!(
        number(&found["samples"]) + number(&found["skipped"]),
        number(&all["samples"])
    );
    let text = feed(&[&words[..], &["--skip-bad"]].concat());
    assert!(stdout(&text).contains(" skipped\n"), "{}", stdout(&text));
    let told = found["first_skipped"].as_array().expect("a list");
    assert!((1..=3).contains(&told.len()), "{found}");
    for skipped in told {
        let why = skipped["why"].as_str().expect("a reason");
        assert!(stdout(&text).contains(why), "{why}");
    }
}

#[test]
fn a_feed_of_bad_samples_alone_has_failed() {
    let archive = data("tar/gnu-ustar.tar");
    // Labels are text there, and never of eight bytes.
    let words = [archive.as_str(), "--field", "cls=i64:", "--skip-bad"];
    for more in [&[][..], &["--workers", "2"], &["--epochs", "1000000000"]] {
        let output = feed(&[&words[..], more, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let found: Value = serde_json::from_str(stdout(&output)).expect("valid JSON");
        assert_eq!(found["samples"], 0);
        assert!(found["limit"].is_null());
        // The first reason, and what to write instead.
        let why = found["first_skipped"][0]["why"].as_str().expect("a reason");
        for part in ["--skip-bad left out all", why, "cls=u8:..8"] {
            assert!(stderr(&output).contains(part), "{}", stderr(&output));
        }
    }
    let text = feed(&words);
    assert!(stdout(&text).contains("\nNothing was fed\n"));
    assert!(!stdout(&text).contains("Feed more"), "{}", stdout(&text));
}

#[test]
fn a_field_of_another_length_is_told_with_one_that_fits() {
    let archive = data("tar/gnu-ustar.tar");
    let words = [archive.as_str(), "--field", "cls=i64:"];
    refused(&words, 1, &["--field cls=u8:..8", "text", "--skip-bad"]);
    refused(&[&archive], 2, &["--field cls=u8:..8", "text"]);
    let output = run(&["feed", "--help"]);
    for part in ["cls=u8:..8", "id=i64:", "img=u8:3x224x224", "(x / 255"] {
        assert!(stdout(&output).contains(part), "{part}");
    }
}

/// As for `load`: damaged at first is a wrong word, and what shows later is a job that failed.
#[test]
fn damaged_files_are_wrong_words() {
    let scratch = Scratch::new();
    let cut = |name: &str, bytes: usize| {
        let whole = std::fs::read(data(name)).expect("there");
        let path = scratch.file(name.rsplit('/').next().expect("a name"));
        std::fs::write(&path, &whole[..bytes]).expect("written");
        path
    };
    let field = ["--field", "jpg=u8:..1000"];
    let (array, archive) = (cut("npy/image.npy", 140), cut("tar/gnu-ustar.tar", 3000));
    refused(&[&array], 2, &["SOURCE", "image.npy"]);
    refused(&[&archive, field[0], field[1]], 2, &["SOURCE", "gnu-ustar"]);
    refused(
        &[&cut("one.safetensors", 40)],
        2,
        &["SOURCE", "Write it again"],
    );
}

#[test]
fn files_that_cannot_be_fed_are_told_by_what_they_are() {
    let scratch = Scratch::new();
    let file = |name: &str, bytes: &[u8]| {
        let path = scratch.file(name);
        std::fs::write(&path, bytes).expect("written");
        path
    };
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n";
    let (lost, lost_tar) = (file("a.npy", pointer), file("a.tar", pointer));
    let packed = file("b.tar.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03");
    let empty = file("c.npy", b"");
    let hollow = file("d.tar", &[0; 1024]);
    let (bare, shards) = (scratch.file("bare"), scratch.file("shards"));
    for folder in [&bare, &shards] {
        std::fs::create_dir(folder).expect("a folder");
    }
    std::fs::rename(&packed, scratch.file("shards/b.tar.gz")).expect("moved");
    let packed = scratch.file("shards/b.tar.gz");
    let field = ["--field", "cls=u8:..8"];
    for (words, parts) in [
        (&[lost.as_str()][..], &["a.npy", "git lfs pull"][..]),
        (&[&lost_tar, field[0], field[1]], &["a.tar", "git lfs pull"]),
        (&[&packed], &["b.tar.gz", "gzip", "unpack it"]),
        (
            &[&shards, field[0], field[1]],
            &["b.tar.gz in it", "unpack"],
        ),
        (&[&empty], &["c.npy is empty"]),
        (&[&hollow, field[0], field[1]], &["d.tar has no samples"]),
        (&[&bare], &["no .tar, .npy or .safetensors", "one that has"]),
        (&[&bare, field[0], field[1]], &["--field", "no .tar file"]),
        (
            &["/no/such", field[0], field[1]],
            &["SOURCE /no/such", "No such"],
        ),
    ] {
        refused(words, 2, parts);
    }
}

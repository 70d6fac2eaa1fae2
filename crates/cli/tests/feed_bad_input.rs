//! `pinlane feed` with bad samples and files.

#[path = "support/feed.rs"]
mod feed;
#[path = "support/scratch.rs"]
mod scratch;
mod support;

use feed::{data, feed, refused, report};
use scratch::Scratch;
use serde_json::Value;
use support::{run, stderr, stdout, unwrapped};

#[test]
fn bad_samples_fail_or_are_skipped() {
    let archive = data("tar/gnu-ustar.tar");
    // One file is empty, and one field has the wrong length.
    let args = [archive.as_str(), "--field", "cls=u8:1"];
    refused(&args, 1, &["train/0002", "--skip-bad"]);
    let all = report(&[&archive, "--field", "jpg=u8:..1000"]);
    let found = report(&[&args[..], &["--skip-bad"]].concat());
    let number = |value: &Value| value.as_u64().expect("a number");
    assert!(number(&found["skipped"]) > 0);
    assert_eq!(
        number(&found["samples"]) + number(&found["skipped"]),
        number(&all["samples"])
    );
    let text = feed(&[&args[..], &["--skip-bad"]].concat());
    assert!(stdout(&text).contains(" skipped\n"), "{}", stdout(&text));
    let told = found["first_skipped"].as_array().expect("a list");
    assert!((1..=3).contains(&told.len()), "{found}");
    for skipped in told {
        let why = skipped["why"].as_str().expect("a reason");
        assert!(unwrapped(&text).contains(why), "{why}");
    }
}

#[test]
fn a_run_with_only_bad_samples_fails() {
    let archive = data("tar/gnu-ustar.tar");
    // The labels are text, never 8 bytes long.
    let args = [archive.as_str(), "--field", "cls=i64:", "--skip-bad"];
    for more in [&[][..], &["--workers", "2"], &["--epochs", "1000000000"]] {
        let output = feed(&[&args[..], more, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let found: Value = serde_json::from_str(stdout(&output)).expect("valid JSON");
        assert_eq!(found["samples"], 0);
        assert!(found["limit"].is_null());
        // The first reason, and a suggestion.
        let why = found["first_skipped"][0]["why"].as_str().expect("a reason");
        for part in ["--skip-bad skipped all", why, "cls=u8:..8"] {
            assert!(stderr(&output).contains(part), "{}", stderr(&output));
        }
    }
    let text = feed(&args);
    assert!(stdout(&text).contains("\nNothing was fed\n"));
    assert!(!stdout(&text).contains("Feed more"), "{}", stdout(&text));
}

#[test]
fn a_field_of_the_wrong_length_gets_a_suggestion() {
    let archive = data("tar/gnu-ustar.tar");
    let args = [archive.as_str(), "--field", "cls=i64:"];
    refused(&args, 1, &["--field cls=u8:..8", "text", "--skip-bad"]);
    refused(&[&archive], 2, &["--field cls=u8:..8", "text"]);
    let output = run(&["feed", "--help"]);
    for part in ["cls=u8:..8", "id=i64:", "img=u8:3x224x224", "(x / 255"] {
        assert!(stdout(&output).contains(part), "{part}");
    }
}

/// As for `load`: damage found while opening is a usage error; damage found later fails the job.
#[test]
fn damaged_files_are_usage_errors() {
    let scratch = Scratch::new();
    let cut = |name: &str, bytes: usize| {
        let whole = std::fs::read(data(name)).expect("there");
        let path = scratch.file(name.rsplit('/').next().expect("a name"));
        std::fs::write(&path, &whole[..bytes]).expect("written");
        path
    };
    let field = ["--field", "jpg=u8:..1000"];
    let (array, archive) = (cut("npy/image.npy", 140), cut("tar/gnu-ustar.tar", 3000));
    refused(&[&array], 2, &["SOURCE", "image.npy", "download it again"]);
    refused(&[&archive, field[0], field[1]], 2, &["SOURCE", "gnu-ustar"]);
    refused(
        &[&cut("one.safetensors", 40)],
        2,
        &["SOURCE", "download it again"],
    );
}

#[test]
fn unsupported_files_are_identified() {
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
    let arrays = file(
        "e.npz",
        b"PK\x03\x04\x14\0\0\0\0\0\0\0!\0\0\0\0\0\x01\0\0\0\x01\0\0\0\x05\0\0\0x.npy",
    );
    let array = data("npy/image.npy");
    let (bare, shards) = (scratch.file("bare"), scratch.file("shards"));
    for folder in [&bare, &shards] {
        std::fs::create_dir(folder).expect("a folder");
    }
    std::fs::rename(&packed, scratch.file("shards/b.tar.gz")).expect("moved");
    let packed = scratch.file("shards/b.tar.gz");
    let field = ["--field", "cls=u8:..8"];
    for (args, parts) in [
        (&[lost.as_str()][..], &["a.npy", "git lfs pull"][..]),
        (&[&lost_tar, field[0], field[1]], &["a.tar", "git lfs pull"]),
        (&[&packed], &["b.tar.gz", "gzip", "gunzip"]),
        (
            &[&packed, field[0], field[1]],
            &["SOURCE", "b.tar.gz", "gunzip"],
        ),
        (
            &[&hollow, &packed, field[0], field[1]],
            &["SOURCE", "b.tar.gz", "gunzip"],
        ),
        (
            &[&arrays, field[0], field[1]],
            &["SOURCE", "e.npz", "numpy.save"],
        ),
        (
            &[&array, field[0], field[1]],
            &["--field is only for tar archives; drop it"],
        ),
        (
            &[&shards, field[0], field[1]],
            &["b.tar.gz in it", "unpack"],
        ),
        (&[&empty], &["c.npy is empty"]),
        (&[&hollow, field[0], field[1]], &["d.tar has no samples"]),
        (&[&bare], &["no .tar, .npy or .safetensors", "name another"]),
        (&[&bare, field[0], field[1]], &["--field", "no .tar file"]),
        (
            &["/no/such", field[0], field[1]],
            &["SOURCE /no/such", "No such"],
        ),
    ] {
        refused(args, 2, parts);
    }
}

//! Archives that GNU tar writes while the test runs.

use std::path::Path;
use std::process::Command;

use pinlane::load::{Dataset, Dtype, Field, Tar, TarConfig};

use super::support::{Scratch, sample};

/// Whether GNU tar is installed; prints a note if not.
fn gnu_tar() -> bool {
    let version = Command::new("tar").arg("--version").output();
    let found = version.is_ok_and(|output| output.stdout.starts_with(b"tar (GNU tar)"));
    if !found {
        println!("skipped: GNU tar is not on PATH");
    }
    found
}

fn tar(folder: &Path, args: &[&str]) {
    let done = Command::new("tar").current_dir(folder).args(args).status();
    assert!(done.expect("tar runs").success(), "tar {args:?}");
}

fn config() -> TarConfig {
    TarConfig::new()
        .field("bin", Field::variable("data", Dtype::U8, 20_000))
        .field("cls", Field::fixed("label", Dtype::U16, []))
}

/// Data of a sample: sizes on both sides of whole blocks.
fn data(number: u16) -> Vec<u8> {
    const SIZES: [usize; 8] = [0, 1, 511, 512, 513, 1_024, 10_000, 20_000];
    let size = SIZES[usize::from(number) % SIZES.len()];
    (0..size)
        .map(|at| (at * 7 + usize::from(number)) as u8)
        .collect()
}

fn write(scratch: &Scratch, folder: &str, numbers: std::ops::Range<u16>) {
    for number in numbers {
        scratch.file(&format!("{folder}/{number:04}.bin"), data(number));
        scratch.file(&format!("{folder}/{number:04}.cls"), number.to_le_bytes());
    }
}

fn check(tar: &Tar, count: u16) {
    assert_eq!(tar.len(), usize::from(count));
    for number in (0..count).rev() {
        let expected = [data(number), number.to_le_bytes().to_vec()];
        assert_eq!(sample(tar, usize::from(number)), expected, "{number}");
    }
}

#[test]
fn shards_in_every_format() {
    if !gnu_tar() {
        return;
    }
    let long = "d".repeat(60);
    for format in ["v7", "ustar", "oldgnu", "gnu", "pax"] {
        // The oldest format cannot store 180 characters of folders.
        let folder = match format {
            "v7" => long.clone(),
            _ => [long.as_str(); 3].join("/"),
        };
        let scratch = Scratch::new();
        write(&scratch, &folder, 0..40);
        let format = format!("--format={format}");
        tar(
            scratch.path(),
            &[&format, "--sort=name", "-cf", "all.tar", &long],
        );
        let all = Tar::open([scratch.path().join("all.tar")], config()).expect("a good archive");
        check(&all, 40);
    }
}

#[test]
fn several_shards_and_appended_ones() {
    if !gnu_tar() {
        return;
    }
    let scratch = Scratch::new();
    write(&scratch, "a", 0..10);
    write(&scratch, "b", 10..15);
    write(&scratch, "c", 15..30);
    tar(scratch.path(), &["--sort=name", "-cf", "shard-0.tar", "a"]);
    tar(scratch.path(), &["--sort=name", "-rf", "shard-0.tar", "b"]);
    tar(
        scratch.path(),
        &[
            "--sort=name",
            "-b",
            "1",
            "-cf",
            "shard-1.tar",
            "-C",
            "c",
            ".",
        ],
    );
    let all = Tar::open([scratch.path()], config()).expect("good archives");
    check(&all, 30);
    assert!(
        all.origin(29).ends_with("shard-1.tar: \"./0029\""),
        "{}",
        all.origin(29)
    );
}

//! Damaged archives: never a panic, and never a sample from outside the archive.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;

use pinlane::load::{Dataset, Tar};

use super::support::{Scratch, data, put_sum, read};
use super::tar::config;

/// An archive to damage, and how often it was accepted and rejected.
struct Victim {
    good: Vec<u8>,
    path: PathBuf,
    file: File,
    opened: usize,
    refused: usize,
    _scratch: Scratch,
}

impl Victim {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new();
        let good = fs::read(data().join("tar").join(name)).expect("the archive");
        let path = scratch.file("damaged.tar", &good);
        Self {
            file: File::options().write(true).open(&path).expect("the file"),
            good,
            path,
            opened: 0,
            refused: 0,
            _scratch: scratch,
        }
    }

    /// Puts bytes into the archive, looks at it, and puts the good ones back.
    fn with(&mut self, at: usize, bytes: &[u8], describe: &dyn Fn() -> String) {
        let write = |file: &File, bytes: &[u8]| file.write_all_at(bytes, at as u64);
        write(&self.file, bytes).expect("it is written");
        self.open(describe);
        write(&self.file, &self.good[at..][..bytes.len()]).expect("it is written");
    }

    /// Opens the archive and reads all its samples.
    fn open(&mut self, describe: &dyn Fn() -> String) {
        let path = self.path.clone();
        let work = AssertUnwindSafe(|| match Tar::open([&path], config()) {
            Ok(tar) => {
                for index in 0..tar.len() {
                    let _ = read(&tar, index);
                    assert!(tar.origin(index).contains("damaged.tar"));
                }
                true
            }
            Err(error) => {
                assert_eq!(error.file(), Some(path.as_path()));
                assert!(!error.to_string().contains(char::is_control));
                false
            }
        });
        match panic::catch_unwind(work) {
            Ok(true) => self.opened += 1,
            Ok(false) => self.refused += 1,
            Err(payload) => {
                eprintln!("{}", describe());
                panic::resume_unwind(payload);
            }
        }
    }
}

/// Positions of headers: blocks with a valid checksum.
fn headers(archive: &[u8]) -> Vec<usize> {
    let is_header = |at: &usize| {
        let mut block = archive[*at..][..512].to_vec();
        let sum = block[148..154].to_vec();
        put_sum(&mut block);
        sum == block[148..154]
    };
    (0..archive.len() / 512)
        .map(|block| block * 512)
        .filter(is_header)
        .collect()
}

#[test]
fn every_truncation() {
    for name in ["gnu-pax.tar", "gnu-gnu.tar"] {
        let mut victim = Victim::new(name);
        for end in (0..victim.good.len()).rev() {
            victim.file.set_len(end as u64).expect("it is cut");
            victim.open(&|| format!("{name} up to {end}"));
        }
        assert!(victim.opened > 10 && victim.refused > 15_000);
    }
}

#[test]
fn every_position_flipped() {
    for name in ["gnu-pax.tar", "gnu-gnu.tar"] {
        let mut victim = Victim::new(name);
        for at in 0..victim.good.len() {
            let bit = 1 << (at % 8);
            let bad = victim.good[at] ^ bit;
            victim.with(at, &[bad], &|| {
                format!("{name} with bit {bit} of {at} flipped")
            });
        }
        assert!(victim.opened > 1_000 && victim.refused > 1_000);
    }
}

/// Otherwise only the checksum would ever be tested.
#[test]
fn every_header_changed_with_a_valid_checksum() {
    for name in ["gnu-pax.tar", "gnu-oldgnu.tar", "python-ustar.tar"] {
        let mut victim = Victim::new(name);
        let headers = headers(&victim.good);
        assert!(headers.len() > 10);
        for (number, start) in headers.into_iter().enumerate() {
            // All bytes of size, type and magic; some of the names.
            let names = (0..100).chain(345..500).skip(number % 20).step_by(20);
            for at in (124..136).chain(156..158).chain(257..265).chain(names) {
                for value in [0, b' ', b'7', b'/', b'.', b'x', b'L', 0x80, 0xff] {
                    let mut bad = victim.good[start..][..512].to_vec();
                    bad[at] = value;
                    put_sum(&mut bad);
                    let describe = || format!("{name}: header at {start}, byte {at} is {value}");
                    victim.with(start, &bad, &describe);
                }
            }
        }
        assert!(victim.opened > 1_000 && victim.refused > 500);
    }
}

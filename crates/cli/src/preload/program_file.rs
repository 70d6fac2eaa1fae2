//! What kind of file a program is, as far as preloading depends on it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Why the loader would not preload a library into a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CannotPreload {
    /// It runs with rights of another user.
    Setuid,
    /// It has no loader.
    Static,
    /// It is for another processor.
    OtherArchitecture,
}

/// The file that a shell would run for this name.
pub(crate) fn find(name: &OsStr) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.components().count() > 1 || name.to_string_lossy().contains('/') {
        return path.is_file().then(|| path.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&folders).map(|folder| folder.join(name));
    found.find(|path| path.is_file())
}

/// What stands against preloading into this program, if anything.
pub(crate) fn cannot_preload(path: &Path) -> Option<CannotPreload> {
    const SET_ID: u32 = 0o6000;
    if fs::metadata(path).ok()?.mode() & SET_ID != 0 {
        return Some(CannotPreload::Setuid);
    }
    // Headers are at the beginning of every program in practice.
    let mut bytes = Vec::new();
    File::open(path)
        .ok()?
        .take(4096)
        .read_to_end(&mut bytes)
        .ok()?;
    of_elf(&bytes)
}

fn of_elf(bytes: &[u8]) -> Option<CannotPreload> {
    const X86_64: u64 = 62;
    const PATH_OF_LOADER: u64 = 3;
    let number = |at: usize, size: usize| -> Option<u64> {
        let mut value = [0; 8];
        value[..size].copy_from_slice(bytes.get(at..at.checked_add(size)?)?);
        Some(u64::from_le_bytes(value))
    };
    // A script, or nothing that the system can run.
    bytes.strip_prefix(b"\x7fELF")?;
    let is_64_bit_little_endian = bytes.get(4..6)? == [2, 1];
    if !is_64_bit_little_endian || number(18, 2)? != X86_64 {
        return Some(CannotPreload::OtherArchitecture);
    }
    let (start, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let mut kinds = (0..count).map(|index| {
        let at = start.checked_add(index.checked_mul(size)?)?;
        number(usize::try_from(at).ok()?, 4)
    });
    // Headers further on cannot be read here, so nothing is said about them.
    let known: Option<Vec<u64>> = kinds.by_ref().collect();
    (!known?.contains(&PATH_OF_LOADER)).then_some(CannotPreload::Static)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with segments of these kinds.
    fn elf(machine: u8, kinds: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (bytes[18], bytes[32], bytes[54], bytes[56]) = (machine, 64, 56, kinds.len() as u8);
        for kind in kinds {
            let mut segment = [0; 56];
            segment[0] = *kind;
            bytes.extend(segment);
        }
        bytes
    }

    #[test]
    fn programs_are_told_apart() {
        assert_eq!(of_elf(&elf(62, &[1, 3])), None);
        assert_eq!(of_elf(&elf(62, &[1, 2])), Some(CannotPreload::Static));
        let arm = elf(183, &[1, 3]);
        assert_eq!(of_elf(&arm), Some(CannotPreload::OtherArchitecture));
        assert_eq!(of_elf(b"#!/bin/sh\n"), None);
        for length in 0..120 {
            of_elf(&elf(62, &[1, 3])[..length]); // a cut header is no panic
        }
    }

    #[test]
    fn names_are_found_as_shells_find_them() {
        assert!(find(OsStr::new("sh")).is_some_and(|path| path.is_absolute()));
        assert_eq!(find(OsStr::new("no-such-program-of-pinlane")), None);
        assert_eq!(find(OsStr::new("./no-such-program-of-pinlane")), None);
        assert_eq!(cannot_preload(&find(OsStr::new("sh")).unwrap()), None);
    }
}

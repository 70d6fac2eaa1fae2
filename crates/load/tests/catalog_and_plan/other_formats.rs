//! Files of other formats: the error names the format and the remedy.

use pinlane::load::{Catalog, HeaderError, LoadErrorKind, OtherFormat};

use super::support::{Scratch, error_of, safetensors};

/// A zip archive whose first file has this name.
fn zip(name: &str) -> Vec<u8> {
    let mut file = b"PK\x03\x04\x14\0\0\0\0\0".to_vec();
    file.extend([0; 16]);
    file.extend((name.len() as u16).to_le_bytes());
    file.extend([0; 2]);
    file.extend(name.as_bytes());
    file.extend([7; 100]);
    file
}

fn tar() -> Vec<u8> {
    let mut file = vec![0; 1024];
    file[..5].copy_from_slice(b"a.npy");
    file[257..263].copy_from_slice(b"ustar\0");
    file
}

const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";

#[test]
fn formats_are_recognized_by_their_first_bytes() {
    for (bytes, found, parts) in [
        (
            POINTER.to_vec(),
            OtherFormat::GitLfsPointer,
            ["Git LFS", "git lfs pull"],
        ),
        (
            b"\n<!DOCTYPE html><html>".to_vec(),
            OtherFormat::WebPage,
            ["web page", "login"],
        ),
        (zip("arr_0.npy"), OtherFormat::Npz, [".npz", "numpy.save"]),
        (
            zip("archive/data.pkl"),
            OtherFormat::Torch,
            [".pt", "save_file"],
        ),
        (zip("notes.txt"), OtherFormat::Zip, ["zip", "unpack"]),
        (
            b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.".to_vec(),
            OtherFormat::Torch,
            ["torch.save", "save_file"],
        ),
        (
            b"\x80\x04\x95\x10\0\0\0\0\0\0\0}".to_vec(),
            OtherFormat::Pickle,
            ["never loaded", "save_file"],
        ),
        (
            b"GGUF\x03\0\0\0\x23\x01\0\0\0\0\0\0".to_vec(),
            OtherFormat::Gguf,
            ["GGUF", "safetensors"],
        ),
        (
            b"\x89HDF\r\n\x1a\n\0\0\0\0".to_vec(),
            OtherFormat::Hdf5,
            ["HDF5", "save_file"],
        ),
        (
            b"\x1f\x8b\x08\0\0\0\0\0\0\x03rest".to_vec(),
            OtherFormat::Compressed("gzip"),
            ["gzip", "unpack"],
        ),
        (tar(), OtherFormat::Tar, ["tar archive", ".tar"]),
    ] {
        // Whatever the extension is.
        for name in ["w.safetensors", "w.npy", "w.bin", "w.json"] {
            let kind = LoadErrorKind::OtherFormat { found };
            assert_eq!(error_of(name, &bytes), (kind.clone(), None), "{name}");
            let message = kind.to_string();
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        }
        let scratch = Scratch::new();
        assert_eq!(OtherFormat::of(scratch.file("w", &bytes)), Some(found));
    }
}

#[test]
fn a_wrong_extension_is_reported_but_damage_is_not() {
    let array = b"\x93NUMPY\x01\0\x76\0{'descr'";
    let found = OtherFormat::Npy;
    let kind = LoadErrorKind::OtherFormat { found };
    assert_eq!(error_of("w.safetensors", array), (kind, None));
    let kind = LoadErrorKind::Header(HeaderError::PastEnd {
        header_bytes: 118,
        file_bytes: 18,
    });
    assert_eq!(error_of("w.npy", array), (kind, None));
}

#[test]
fn a_header_length_that_looks_like_another_format_is_a_header() {
    for length in [0x088b1f, 0x0280] {
        let mut header = "{}".to_owned();
        header.push_str(&" ".repeat(length - header.len()));
        let file = safetensors(&header, &[]);
        let scratch = Scratch::new();
        let path = scratch.file("w.safetensors", &file);
        assert!(Catalog::open(&path).is_ok(), "{length}");
        assert_eq!(OtherFormat::of(&path), None);
        // Even if it is truncated.
        let (kind, _) = error_of("w.safetensors", &file[..100]);
        assert!(
            matches!(kind, LoadErrorKind::Header(HeaderError::PastEnd { .. })),
            "{kind}"
        );
    }
    let scratch = Scratch::new();
    for bytes in [&b""[..], b"P", b"PK\x03\x04", b"not any of these"] {
        let found = OtherFormat::of(scratch.file("w", bytes));
        assert!(matches!(found, None | Some(OtherFormat::Zip)), "{bytes:?}");
    }
    assert_eq!(OtherFormat::of("/no/such"), None);
    assert_eq!(OtherFormat::of(scratch.path()), None);
}

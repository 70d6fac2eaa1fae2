//! Recognizes files of other formats by their first bytes, so that an error can name the format.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::{Format, HeaderError, LoadError, LoadErrorKind, NpyError, OtherFormat, file_info};

/// Bytes to examine: the tar magic is the last, at byte 257.
const HEAD_BYTES: usize = 512;

impl OtherFormat {
    /// Detects the format of a file by its first bytes.
    #[must_use]
    pub fn of(path: impl AsRef<Path>) -> Option<Self> {
        let (file, _) = file_info::open_regular(path.as_ref()).ok()?;
        Self::of_file(&file)
    }

    fn of_file(file: &File) -> Option<Self> {
        let mut head = [0; HEAD_BYTES];
        let mut len = 0;
        while let read @ 1.. = file.read_at(&mut head[len..], len as u64).ok()? {
            len += read;
        }
        let head = &head[..len];
        // A safetensors header length can look like any magic, but a brace follows it.
        if head.get(8) == Some(&b'{') {
            return None;
        }
        let starts: [(&[u8], Self); 11] = [
            (b"version https://git-lfs.", Self::GitLfsPointer),
            (b"GGUF", Self::Gguf),
            (b"\x89HDF\r\n", Self::Hdf5),
            (b"\x93NUMPY", Self::Npy),
            (b"\x1f\x8b", Self::Compressed("gzip")),
            (b"\x28\xb5\x2f\xfd", Self::Compressed("zstd")),
            (b"\xfd7zXZ\0", Self::Compressed("xz")),
            (b"BZh", Self::Compressed("bzip2")),
            (b"\x04\x22\x4d\x18", Self::Compressed("lz4")),
            // The pickled magic number of torch before 1.6.
            (b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46", Self::Torch),
            (b"PK\x03\x04", zip(head)),
        ];
        if let Some((_, found)) = starts.iter().find(|(start, _)| head.starts_with(start)) {
            return Some(*found);
        }
        let text = head.trim_ascii_start().to_ascii_lowercase();
        match head {
            // Pickle protocols that start with their number.
            [0x80, 2..=5, ..] => Some(Self::Pickle),
            _ if text.starts_with(b"<!doctype html") => Some(Self::WebPage),
            _ if text.starts_with(b"<html") => Some(Self::WebPage),
            _ if head.get(257..262) == Some(b"ustar") => Some(Self::Tar),
            _ => None,
        }
    }
}

/// The kind of a zip archive, by the name of its first file.
fn zip(head: &[u8]) -> OtherFormat {
    let name = match head.get(26..) {
        Some([low, high, _, _, rest @ ..]) => {
            let length = u16::from_le_bytes([*low, *high]);
            rest.get(..length.into()).unwrap_or(rest)
        }
        _ => &[],
    };
    match name {
        name if name.ends_with(b".npy") => OtherFormat::Npz,
        name if name.ends_with(b"/data.pkl") => OtherFormat::Torch,
        _ => OtherFormat::Zip,
    }
}

/// Replaces a header error by the format the file really has, if it can be recognized.
pub(super) fn explain(file: &File, format: Option<Format>, error: LoadError) -> LoadError {
    let may_be_other_format = matches!(
        error.kind(),
        LoadErrorKind::Header(
            HeaderError::TooShort { .. }
                | HeaderError::Empty
                | HeaderError::TooLarge { .. }
                | HeaderError::PastEnd { .. }
                | HeaderError::NotUtf8 { .. }
                | HeaderError::NotJson { .. }
                | HeaderError::NotAnObject
        ) | LoadErrorKind::Npy(NpyError::Magic)
    );
    match OtherFormat::of_file(file).filter(|_| may_be_other_format) {
        // An npy file with an error after its first bytes.
        Some(OtherFormat::Npy) if format == Some(Format::Npy) => error,
        Some(found) => LoadErrorKind::OtherFormat { found }.into(),
        None => error,
    }
}

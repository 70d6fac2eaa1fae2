//! Recognizes files of other formats by their first bytes, so that an error can name the format.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::{HeaderError, NpyError};
use crate::{Format, LoadError, LoadErrorKind, file_info};

/// Bytes to examine: the tar magic is the last, at byte 257.
const HEAD_BYTES: usize = 512;

/// A format that cannot be loaded as it is. Often its contents can be converted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum OtherFormat {
    /// A Git LFS pointer: the file itself was not fetched.
    GitLfsPointer,
    /// A web page that a server sent instead of the file.
    WebPage,
    /// A zip archive of numpy arrays (`.npz`).
    Npz,
    /// A file written by `torch.save` (`.pt`, `.pth`, `.bin`).
    Torch,
    /// Pickled Python objects.
    Pickle,
    /// Any other zip archive.
    Zip,
    /// A GGUF file (llama.cpp).
    Gguf,
    /// An HDF5 file (`.h5`).
    Hdf5,
    /// A compressed file, with the name of the compression.
    Compressed(&'static str),
    /// A tar archive.
    Tar,
    /// An npy file without the `.npy` extension.
    Npy,
}

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

    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Self::GitLfsPointer => "fetch the file with `git lfs pull`",
            Self::WebPage => "download it again; the server may require a login",
            Self::Npz => {
                "save each array with numpy.save, or all of them with safetensors.numpy.save_file"
            }
            Self::Torch | Self::Pickle => {
                "convert it with safetensors.torch.save_file(torch.load(file), \"new.safetensors\")"
            }
            Self::Gguf => "use the safetensors files it was made from",
            Self::Hdf5 => "convert it with safetensors.numpy.save_file",
            Self::Zip | Self::Compressed(_) => "unpack it first",
            Self::Tar => "unpack it; `pinlane feed` takes it as a dataset if its name ends in .tar",
            Self::Npy => "rename it to end in .npy",
        }
    }
}

impl fmt::Display for OtherFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GitLfsPointer => "a Git LFS pointer, not the file itself",
            Self::WebPage => "a web page (HTML), not the file itself",
            Self::Npz => "a zip archive of numpy arrays (.npz)",
            Self::Torch => "a torch.save file (.pt, .pth, .bin)",
            Self::Pickle => "pickled Python objects, which are never loaded",
            Self::Zip => "a zip archive",
            Self::Gguf => "a GGUF file",
            Self::Hdf5 => "an HDF5 file",
            Self::Compressed(method) => return write!(f, "compressed with {method}"),
            Self::Tar => "a tar archive",
            Self::Npy => "an npy file",
        })
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

//! Files of other kinds, known by how they begin, so that an error can say what they are.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::{HeaderFault, NpyFault};
use crate::{Fault, Format, LoadError, file};

/// Bytes that are looked at: the mark of tar archives comes last, at byte 257.
const HEAD_BYTES: usize = 512;

/// A kind of file that cannot be loaded as it is, though what is in it perhaps can.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum OtherFormat {
    /// What Git LFS leaves in the place of a file that was not fetched.
    GitLfsPointer,
    /// A page for a browser, as a server sends it in the place of a file.
    WebPage,
    /// Several arrays of numpy's in a zip archive (`.npz`).
    Npz,
    /// What `torch.save` writes (`.pt`, `.pth`, `.bin`).
    Torch,
    /// Pickled Python objects.
    Pickle,
    /// Another zip archive.
    Zip,
    /// Weights of llama.cpp.
    Gguf,
    /// An HDF5 file (`.h5`).
    Hdf5,
    /// Compressed, with this.
    Compressed(&'static str),
    /// A tar archive.
    Tar,
    /// An npy file under a name that says otherwise.
    Npy,
}

impl OtherFormat {
    /// What a file is by its first bytes, if it is any of these.
    #[must_use]
    pub fn of(path: impl AsRef<Path>) -> Option<Self> {
        let (file, _) = file::open_plain(path.as_ref()).ok()?;
        Self::of_file(&file)
    }

    fn of_file(file: &File) -> Option<Self> {
        let mut head = [0; HEAD_BYTES];
        let mut len = 0;
        while let read @ 1.. = file.read_at(&mut head[len..], len as u64).ok()? {
            len += read;
        }
        Self::of_head(&head[..len])
    }

    /// What a file that begins like this is.
    fn of_head(head: &[u8]) -> Option<Self> {
        // Lengths of safetensors headers can look like anything, but a brace follows.
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
            // The magic number of torch before version 1.6, as pickle writes it.
            (b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46", Self::Torch),
            (b"PK\x03\x04", zip(head)),
        ];
        if let Some((_, found)) = starts.iter().find(|(start, _)| head.starts_with(start)) {
            return Some(*found);
        }
        match head {
            // Protocols that begin with their number.
            [0x80, 2..=5, ..] => Some(Self::Pickle),
            _ if is_page(head) => Some(Self::WebPage),
            _ if head.get(257..262) == Some(b"ustar") => Some(Self::Tar),
            _ => None,
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::GitLfsPointer => "fetch the file with `git lfs pull`",
            Self::WebPage => "download it again; the server may want a login",
            Self::Npz => {
                "save each array by itself with numpy.save, or all with safetensors.numpy.save_file"
            }
            Self::Torch | Self::Pickle => {
                "convert it with safetensors.torch.save_file(torch.load(file), \"new.safetensors\")"
            }
            Self::Gguf => "use the safetensors files that it was made from",
            Self::Hdf5 => "convert it with safetensors.numpy.save_file",
            Self::Zip | Self::Compressed(_) => "unpack it first",
            Self::Tar => {
                "unpack it; `pinlane feed` takes it as a dataset, under a name that ends in .tar"
            }
            Self::Npy => "give it a name that ends in .npy",
        }
    }

    /// What it is and what to do, to go behind the file's name.
    pub(crate) fn says(self) -> String {
        format!("is {self}; {}", self.remedy())
    }
}

impl fmt::Display for OtherFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GitLfsPointer => "a pointer of Git LFS, not the file itself",
            Self::WebPage => "a web page (HTML), not the file itself",
            Self::Npz => "a zip archive of numpy arrays (.npz)",
            Self::Torch => "a file of torch.save (.pt, .pth, .bin)",
            Self::Pickle => "pickled Python objects, which are never loaded",
            Self::Zip => "a zip archive",
            Self::Gguf => "a GGUF file",
            Self::Hdf5 => "an HDF5 file",
            Self::Compressed(how) => return write!(f, "compressed with {how}"),
            Self::Tar => "a tar archive",
            Self::Npy => "an npy file",
        })
    }
}

/// By the name of the first file in it.
fn zip(head: &[u8]) -> OtherFormat {
    let length = head.get(26..28).map_or(0, |length| {
        usize::from(u16::from_le_bytes([length[0], length[1]]))
    });
    let name = head.get(30..).unwrap_or(&[]);
    let name = &name[..length.min(name.len())];
    match name {
        name if name.ends_with(b".npy") => OtherFormat::Npz,
        name if name.ends_with(b"/data.pkl") => OtherFormat::Torch,
        _ => OtherFormat::Zip,
    }
}

fn is_page(head: &[u8]) -> bool {
    let text = head.trim_ascii_start().to_ascii_lowercase();
    text.starts_with(b"<!doctype html") || text.starts_with(b"<html")
}

/// The error of a header, or what the file is instead of this format where that is known.
pub(super) fn instead(file: &File, format: Option<Format>, error: LoadError) -> LoadError {
    let of_another_kind = matches!(
        error.fault(),
        Fault::Header(
            HeaderFault::TooShort { .. }
                | HeaderFault::Empty
                | HeaderFault::TooLarge { .. }
                | HeaderFault::PastEnd { .. }
                | HeaderFault::NotUtf8 { .. }
                | HeaderFault::NotJson { .. }
                | HeaderFault::NotAnObject
        ) | Fault::Npy(NpyFault::Magic)
    );
    match OtherFormat::of_file(file).filter(|_| of_another_kind) {
        // One with something wrong behind its first bytes.
        Some(OtherFormat::Npy) if format == Some(Format::Npy) => error,
        Some(found) => Fault::OtherFormat { found }.into(),
        None => error,
    }
}

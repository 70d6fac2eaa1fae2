//! Formats that are recognized but cannot be loaded.

use std::fmt;

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
    pub(super) fn remedy(self) -> &'static str {
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
            Self::Compressed("gzip") => "unpack it first, with gunzip",
            Self::Compressed("zstd") => "unpack it first, with unzstd",
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

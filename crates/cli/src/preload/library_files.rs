//! The embedded libraries as files, which the loader needs.

use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use super::private_folder::{self, TemporaryFolder};
use crate::{EmbeddedLibraries, calibrated_profiles};

/// Where the libraries are.
pub(crate) struct LibraryFiles {
    /// The library to preload.
    pub(crate) boost: PathBuf,
    /// A folder with the simulated `libcuda.so.1`, if it was asked for.
    pub(crate) simcuda_folder: Option<PathBuf>,
}

impl LibraryFiles {
    /// Puts the libraries into the user's cache folder, or into that of the run where it cannot be used.
    pub(crate) fn install(
        libraries: EmbeddedLibraries,
        simulated: bool,
        run: &TemporaryFolder,
    ) -> anyhow::Result<Self> {
        ensure!(
            !libraries.boost.is_empty() && (!simulated || !libraries.simcuda.is_empty()),
            "this build of pinlane has no library to preload; build it in a copy of the repository"
        );
        let cached = cache_folder().map(|folder| Self::install_into(&folder, libraries, simulated));
        match cached {
            Some(Ok(files)) => Ok(files),
            _ => Self::install_into(run.path(), libraries, simulated),
        }
    }

    fn install_into(
        folder: &Path,
        libraries: EmbeddedLibraries,
        simulated: bool,
    ) -> anyhow::Result<Self> {
        // By contents, so that several versions of the tool can run at once.
        let place = |name: &str, bytes: &[u8]| -> anyhow::Result<PathBuf> {
            let mut hasher = DefaultHasher::new();
            hasher.write(bytes);
            let folder = folder.join(format!("{name}-{:016x}", hasher.finish()));
            private_folder::create(&folder)?;
            Ok(folder)
        };
        let write = |path: &Path, bytes: &[u8]| -> anyhow::Result<()> {
            if !private_folder::holds(path, bytes) {
                private_folder::write(path, bytes)
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
            Ok(())
        };
        let boost = place("boost", libraries.boost)?.join("libpinlane_boost.so");
        write(&boost, libraries.boost)?;
        let simcuda_folder = match simulated {
            false => None,
            true => {
                let folder = place("simcuda", libraries.simcuda)?;
                // Under every name that programs look for.
                for name in ["libcuda.so.1", "libcuda.so"] {
                    write(&folder.join(name), libraries.simcuda)?;
                }
                Some(folder)
            }
        };
        Ok(Self {
            boost,
            simcuda_folder,
        })
    }
}

/// The cache folder, if the loader's lists can name it: they are separated by colons and spaces, and expand dollars.
fn cache_folder() -> Option<PathBuf> {
    let folder = calibrated_profiles::cache_root(|name| std::env::var_os(name))?.join("libraries");
    let text = folder.to_str()?;
    (!text.contains([':', ' ', '$', ';'])).then_some(folder)
}

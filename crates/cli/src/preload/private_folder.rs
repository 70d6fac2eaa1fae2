//! Folders that only this user can write to: what is preloaded from them runs with the user's rights.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

const OWNER_ONLY: u32 = 0o700;

/// Creates a folder, with those above it. One that exists must be the user's own.
pub(crate) fn create(path: &Path) -> anyhow::Result<()> {
    let created = DirBuilder::new()
        .recursive(true)
        .mode(OWNER_ONLY)
        .create(path);
    created.with_context(|| format!("cannot create folder {}", path.display()))?;
    check(path)
}

/// Fails if others could have put a file into the folder.
fn check(path: &Path) -> anyhow::Result<()> {
    let found = fs::symlink_metadata(path)?;
    // The owner of this entry is the user that the process runs as.
    let user = fs::metadata("/proc/self")?.uid();
    let name = path.display();
    ensure!(found.is_dir(), "{name} is not a folder");
    ensure!(found.uid() == user, "{name} belongs to another user");
    ensure!(
        found.mode() & 0o022 == 0,
        "others can write to {name}; run chmod 700 on it"
    );
    Ok(())
}

/// A new folder for one run, removed when this is dropped.
pub(crate) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    pub(crate) fn new() -> anyhow::Result<Self> {
        // Not the number of the process, which another container may have, too.
        let name = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
        let path = std::env::temp_dir().join(format!("pinlane-run-{}", name.trim()));
        let created = DirBuilder::new().mode(OWNER_ONLY).create(&path);
        created.with_context(|| {
            format!(
                "cannot create folder {}; set TMPDIR to a folder that can be written to",
                path.display()
            )
        })?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // A leftover folder does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether a file has exactly these bytes.
pub(crate) fn holds(path: &Path, bytes: &[u8]) -> bool {
    let same_size = fs::metadata(path).is_ok_and(|found| found.len() == bytes.len() as u64);
    same_size && fs::read(path).is_ok_and(|found| found == bytes)
}

/// Writes a file so that others never see a part of it.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension(format!("{}.new", std::process::id()));
    let written = fs::write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, path));
    written.inspect_err(|_| {
        let _ = fs::remove_file(&unfinished);
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let scratch = Scratch::new();
        let path = scratch.folder().join("a/b");
        create(&path).expect("a new one");
        create(&path).expect("the same again");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, OWNER_ONLY);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let error = create(&path).unwrap_err().to_string();
        assert!(error.contains("chmod 700"), "{error}");
    }
}

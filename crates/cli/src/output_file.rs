//! Files that are either written whole or left as they were.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::output::UsageError;

/// Extensions of what is read in folders.
const READ_IN_FOLDERS: [&str; 4] = ["json", "npy", "safetensors", "tar"];

/// The file of a flag that writes to files alone.
pub(crate) fn named(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" => Err("this does not go to standard output; write ./- for a file of that name".into()),
        text => Ok(text.into()),
    }
}

/// [`write`], of a text.
pub(crate) fn write_text(path: &Path, text: &str) -> anyhow::Result<()> {
    write(path, |out| out.write_all(text.as_bytes()))
}

/// Writes a file under a temporary name beside it, and renames it. A failed write leaves what was
/// there. What is no plain file, such as a pipe, is written to as it is.
pub(crate) fn write(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let result = place(path).and_then(|place| match place {
        Place::AsItIs => OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|file| fill(file, content).map(drop)),
        Place::Replaced(path) => replace(&path, content),
    });
    // A closed pipe behind a named file is a failure, unlike one behind standard output.
    result
        .map_err(|error| anyhow::anyhow!("{error}"))
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// Fails where the file of one of these flags could not be written, or would take the place of an
/// input, before work is done for it. Leaves everything as it is.
pub(crate) fn check<'a>(
    flags: &[(&str, &Option<PathBuf>)],
    inputs: impl IntoIterator<Item = &'a Path> + Clone,
) -> Result<(), UsageError> {
    for (flag, path) in flags {
        let Some(path) = path else { continue };
        if inputs.clone().into_iter().any(|input| is_of(path, input)) {
            return Err(UsageError::new(format!(
                "{flag}: {} is read from, and would be overwritten; name another file",
                path.display()
            )));
        }
        place(path).and_then(try_out).map_err(|error| {
            UsageError::new(format!(
                "{flag}: {} cannot be written: {error}; name a file in a folder that is there and \
                 can be written to",
                path.display()
            ))
        })?;
    }
    Ok(())
}

/// Whether this is the input, or a file that is read in the folder that is the input.
fn is_of(path: &Path, input: &Path) -> bool {
    let Ok(path) = fs::canonicalize(path) else {
        return false;
    };
    let Ok(input) = fs::canonicalize(input) else {
        return false;
    };
    let extension = path.extension().and_then(|extension| extension.to_str());
    let is_read = extension.is_some_and(|extension| READ_IN_FOLDERS.contains(&extension));
    path == input || (is_read && path.parent() == Some(&input))
}

/// How a file is written.
enum Place {
    /// It is no plain file, and written to as it is.
    AsItIs,
    /// A new file takes its place.
    Replaced(PathBuf),
}

fn place(path: &Path) -> io::Result<Place> {
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(there) if !there.is_file() => Ok(Place::AsItIs),
        // Behind a link, the file is replaced and not the link.
        Ok(_) => fs::canonicalize(path).map(Place::Replaced),
        Err(_) => Ok(Place::Replaced(path.to_owned())),
    }
}

/// Whether there could be a file beside it. Opening a pipe would wait for its reader.
fn try_out(place: Place) -> io::Result<()> {
    let Place::Replaced(path) = place else {
        return Ok(());
    };
    let draft = draft_of(&path)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).open(&draft)?;
    fs::remove_file(&draft)
}

fn replace(path: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let draft = draft_of(path)?;
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&draft)
        .and_then(|file| fill(file, content))
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // It may never have come to be.
        let _ = fs::remove_file(&draft);
    }
    written
}

fn fill(file: File, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<File> {
    let mut out = BufWriter::new(file);
    content(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

/// A name in the same folder that nobody else uses.
fn draft_of(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let mut draft = std::ffi::OsString::from(".");
    draft.push(name);
    draft.push(format!(".{}.tmp", std::process::id()));
    Ok(path.with_file_name(draft))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let name = format!("pinlane-file-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    #[test]
    fn a_failed_write_leaves_what_was_there_and_nothing_else() {
        let folder = folder("failed");
        let path = folder.join("kept.toml");
        write(&path, |out| out.write_all(b"first")).expect("written");
        let error = write(&path, |out| {
            out.write_all(b"sec")?;
            Err(io::Error::other("the disk is full"))
        });
        let error = format!("{:#}", error.expect_err("it failed"));
        assert!(error.contains("kept.toml"), "{error}");
        assert!(error.contains("the disk is full"), "{error}");
        assert_eq!(fs::read(&path).expect("still there"), b"first");
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = folder("link");
        let (target, link) = (folder.join("target"), folder.join("link"));
        fs::write(&target, "old").expect("written");
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        write(&link, |out| out.write_all(b"new")).expect("written");
        assert!(link.is_symlink());
        assert_eq!(fs::read(&target).expect("there"), b"new");
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn trying_out_leaves_everything_as_it_is() {
        let folder = folder("check");
        let (there, new) = (folder.join("there"), folder.join("new"));
        fs::write(&there, "kept").expect("written");
        let flags = [&there, &new].map(|path| Some(path.clone()));
        check(
            &[
                ("--svg", &flags[0]),
                ("--html", &flags[1]),
                ("--csv", &None),
            ],
            [],
        )
        .expect("fine");
        assert_eq!(fs::read(&there).expect("still there"), b"kept");
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
        check(&[("--svg", &Some("/dev/null".into()))], []).expect("fine");
        for wrong in [
            folder.clone(),
            folder.join("no/such"),
            there.join("x"),
            "".into(),
        ] {
            let error = check(&[("--svg", &None), ("--html", &Some(wrong))], []);
            let error = error.expect_err("nothing to write to").to_string();
            assert!(error.starts_with("--html: ") && error.contains("name a file"));
        }
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn an_input_is_not_overwritten() {
        let folder = folder("input");
        let (input, link) = (folder.join("a.npy"), folder.join("link"));
        fs::write(&input, "kept").expect("written");
        std::os::unix::fs::symlink(&input, &link).expect("a link");
        let report = folder.join("report.html");
        fs::write(&report, "earlier").expect("written");
        let check = |path: &Path, input: &Path| {
            let path = Some(path.to_owned());
            check(&[("--html", &path)], [Path::new("/no/such"), input])
        };
        for path in [&input, &link, &folder.join("./a.npy")] {
            for input in [&input, &folder] {
                let error = check(path, input).expect_err("read from").to_string();
                assert!(error.contains("--html") && error.contains("name another"));
            }
        }
        // An earlier report, and a new one.
        for path in [&report, &folder.join("b.npy")] {
            check(path, &folder).expect("fine");
            check(path, &input).expect("fine");
        }
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn what_is_no_plain_file_is_not_replaced() {
        write(Path::new("/dev/null"), |out| out.write_all(b"away")).expect("written");
        assert!(!fs::metadata("/dev/null").expect("there").is_file());
        assert!(write(&std::env::temp_dir(), |_| Ok(())).is_err());
        assert!(write(Path::new(""), |_| Ok(())).is_err());
    }
}

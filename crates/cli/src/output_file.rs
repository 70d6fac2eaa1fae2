//! Output files, replaced atomically: a failed write leaves the old file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use pinlane_report::Environment;
use pinlane_report::timeline::{Chart, Exporter, Html, Svg, Trace};

use crate::input_error::UsageError;

/// Extensions of the files that commands read when an input is a folder.
const INPUT_EXTENSIONS: [&str; 4] = ["json", "npy", "safetensors", "tar"];

/// The flags that write a chart to files.
#[derive(clap::Args)]
pub(crate) struct ChartFiles {
    /// Write the chart as an SVG image
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Write the chart as an interactive HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write the chart as a trace for Perfetto (ui.perfetto.dev) or chrome://tracing
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

impl ChartFiles {
    /// See [`check`].
    pub(crate) fn check<'a>(
        &self,
        inputs: impl IntoIterator<Item = &'a Path> + Clone,
    ) -> Result<(), UsageError> {
        let [svg, html, trace] = self.all();
        let flags = [("--svg", svg), ("--html", html), ("--trace", trace)];
        check(&flags, inputs)
    }

    /// Writes the files that are given; `environment` is for the page.
    pub(crate) fn write(
        &self,
        chart: &Chart,
        environment: impl FnOnce() -> Environment,
    ) -> anyhow::Result<()> {
        let environment = self.html.as_ref().map(|_| environment());
        let environment = environment.unwrap_or_default();
        let exporters: [&dyn Exporter; 3] = [&Svg, &Html { environment }, &Trace];
        for (path, exporter) in self.all().into_iter().zip(exporters) {
            if let Some(path) = path {
                write(path, |out| exporter.export(chart, out))?;
            }
        }
        Ok(())
    }

    pub(crate) fn all(&self) -> [&Option<PathBuf>; 3] {
        [&self.svg, &self.html, &self.trace]
    }
}

/// Parses the path of a flag that cannot write to standard output.
pub(crate) fn parse(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" => Err("cannot write to standard output; use ./- for a file of that name".into()),
        text => Ok(text.into()),
    }
}

/// [`write`] of a text.
pub(crate) fn write_text(path: &Path, text: &str) -> anyhow::Result<()> {
    write(path, |out| out.write_all(text.as_bytes()))
}

/// Writes a text to a file, if one is given.
pub(crate) fn write_given(
    path: &Option<PathBuf>,
    text: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    path.as_ref()
        .map_or(Ok(()), |path| write_text(path, &text()))
}

/// Writes a file under a temporary name next to it, then renames it. Anything but a regular file, such as
/// a pipe, is written in place.
pub(crate) fn write(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let result = target(path).and_then(|target| match target {
        Some(target) => replace(&target, content),
        None => fill(OpenOptions::new().write(true).open(path)?, content).map(drop),
    });
    // Drops the error kind: a closed named pipe is a failure, unlike a closed standard output.
    let result = result.map_err(|error| anyhow::anyhow!("{error}"));
    result.with_context(|| format!("cannot write {}", path.display()))
}

/// Checks before any work is done that the files of these flags can be written and would not overwrite an
/// input. Changes nothing.
pub(crate) fn check<'a>(
    flags: &[(&str, &Option<PathBuf>)],
    inputs: impl IntoIterator<Item = &'a Path> + Clone,
) -> Result<(), UsageError> {
    for (flag, path) in flags {
        let Some(path) = path else { continue };
        let name = path.display();
        let mut inputs = inputs.clone().into_iter();
        if inputs.any(|input| is_input(path, input)) {
            return Err(UsageError(format!(
                "{flag}: {name} is an input and would be overwritten; name another file"
            )));
        }
        try_create(path).map_err(|error| {
            UsageError(format!(
                "{flag}: cannot write {name}: {error}; name a file in an existing, writable folder"
            ))
        })?;
    }
    Ok(())
}

/// Whether the path is the input, or a file that is read from the input folder.
fn is_input(path: &Path, input: &Path) -> bool {
    let (Ok(path), Ok(input)) = (fs::canonicalize(path), fs::canonicalize(input)) else {
        return false;
    };
    let extension = path.extension().and_then(|extension| extension.to_str());
    let is_read = extension.is_some_and(|extension| INPUT_EXTENSIONS.contains(&extension));
    path == input || (is_read && path.parent() == Some(&input))
}

/// The file to replace. `None` if the path is not a regular file.
fn target(path: &Path) -> io::Result<Option<PathBuf>> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => Ok(None),
        // Replaces the target of a symbolic link, not the link.
        Ok(_) => fs::canonicalize(path).map(Some),
        Err(_) => Ok(Some(path.to_owned())),
    }
}

/// Whether the temporary file can be created. Does not open a pipe, which would wait for its reader.
fn try_create(path: &Path) -> io::Result<()> {
    let Some(path) = target(path)? else {
        return Ok(());
    };
    let draft = draft_path(&path)?;
    File::create_new(&draft)?;
    fs::remove_file(&draft)
}

fn replace(path: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let draft = draft_path(path)?;
    let written = File::create_new(&draft)
        .and_then(|file| fill(file, content))
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // It may not exist.
        let _ = fs::remove_file(&draft);
    }
    written
}

fn fill(file: File, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<File> {
    let mut out = BufWriter::new(file);
    content(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

/// A unique temporary name in the same folder.
fn draft_path(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let mut draft = std::ffi::OsString::from(".");
    draft.push(name);
    draft.push(format!(".{}.tmp", std::process::id()));
    Ok(path.with_file_name(draft))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_failed_write_keeps_the_old_file_and_leaves_no_draft() {
        let scratch = Scratch::new();
        let folder = scratch.folder();
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
        assert_eq!(fs::read_dir(folder).expect("a folder").count(), 1);
    }

    #[test]
    fn a_link_stays_a_link() {
        let scratch = Scratch::new();
        let folder = scratch.folder();
        let (target, link) = (folder.join("target"), folder.join("link"));
        fs::write(&target, "old").expect("written");
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        write(&link, |out| out.write_all(b"new")).expect("written");
        assert!(link.is_symlink());
        assert_eq!(fs::read(&target).expect("there"), b"new");
    }

    #[test]
    fn the_check_changes_nothing() {
        let scratch = Scratch::new();
        let folder = scratch.folder();
        let (there, new) = (folder.join("there"), folder.join("new"));
        fs::write(&there, "kept").expect("written");
        let flags = [&there, &new].map(|path| Some(path.clone()));
        let [old, created] = &flags;
        check(&[("--svg", old), ("--html", created), ("--csv", &None)], []).expect("fine");
        assert_eq!(fs::read(&there).expect("still there"), b"kept");
        assert_eq!(fs::read_dir(folder).expect("a folder").count(), 1);
        check(&[("--svg", &Some("/dev/null".into()))], []).expect("fine");
        let missing = folder.join("no/such");
        for wrong in [folder.to_owned(), missing, there.join("x"), "".into()] {
            let error = check(&[("--svg", &None), ("--html", &Some(wrong))], []);
            let error = error.expect_err("nothing to write to").to_string();
            assert!(error.starts_with("--html: ") && error.contains("name a file"));
        }
    }

    #[test]
    fn an_input_is_not_overwritten() {
        let scratch = Scratch::new();
        let folder = scratch.folder();
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
            for input in [&input, folder] {
                let error = check(path, input).expect_err("read from").to_string();
                assert!(error.contains("--html") && error.contains("name another"));
            }
        }
        // An earlier report, and a new one.
        for path in [&report, &folder.join("b.npy")] {
            check(path, folder).expect("fine");
            check(path, &input).expect("fine");
        }
    }

    #[test]
    fn special_files_are_written_in_place() {
        write(Path::new("/dev/null"), |out| out.write_all(b"away")).expect("written");
        assert!(!fs::metadata("/dev/null").expect("there").is_file());
        assert!(write(&std::env::temp_dir(), |_| Ok(())).is_err());
        assert!(write(Path::new(""), |_| Ok(())).is_err());
    }
}

//! The dataset to read.

use std::path::Path;

use pinlane::load::{
    Arrays, Dataset, HeaderError, LoadError, LoadErrorKind, Tar, TarConfig, TarError,
};

use super::{Args, synthetic};
use crate::input_error::{self, When, failed};
use crate::interrupt::Interrupt;
use crate::output::UsageError;

const SYNTHETIC: &str = "synthetic";

enum SourceKind {
    Synthetic,
    Arrays,
    Tar,
}

/// Fails if arguments contradict each other, before anything is opened.
pub(super) fn check(args: &Args) -> Result<(), UsageError> {
    let kind = kind(args)?;
    if !matches!(kind, SourceKind::Synthetic) {
        check_paths(args, &kind)?;
    }
    let synthetic_only = [
        ("--shape", args.shape.is_some()),
        ("--samples", args.samples.is_some()),
        ("--dtype", args.dtype.is_some()),
    ];
    let given = synthetic_only.into_iter().find(|(_, given)| *given);
    match (kind, given) {
        (SourceKind::Arrays | SourceKind::Tar, Some((flag, _))) => wrong(format!(
            "{flag} is only for SOURCE synthetic; drop it"
        )),
        (SourceKind::Tar, None) if args.field.is_empty() => wrong(
            "archives need a --field for each extension to read, such as --field img=u8:3x224x224 --field cls=u8:..8 (text of up to 8 bytes)"
                .to_owned(),
        ),
        (SourceKind::Synthetic | SourceKind::Arrays, _) if !args.field.is_empty() => wrong(no_archive(args)),
        _ => Ok(()),
    }
}

/// The error for --field without an archive.
fn no_archive(args: &Args) -> String {
    let mut paths = args.source.iter();
    let Some(folder) = paths.find(|path| Path::new(path).is_dir()) else {
        return "--field is only for tar archives; drop it, or name .tar files as SOURCE"
            .to_owned();
    };
    let remedy = input_error::other_format_in(Path::new(folder));
    let remedy = remedy.unwrap_or("name a folder with .tar files, or drop --field".to_owned());
    format!("--field is only for tar archives, but SOURCE {folder} has no .tar file; {remedy}")
}

/// Fails if a file is missing, or given twice.
fn check_paths(args: &Args, kind: &SourceKind) -> Result<(), UsageError> {
    for (number, word) in args.source.iter().enumerate() {
        let path = Path::new(word);
        if let Err(error) = path.metadata() {
            return wrong(format!(
                "cannot open SOURCE {word}: {error}; name existing files, or synthetic"
            ));
        }
        let before = args.source[..number].iter().map(Path::new);
        // Reading an archive twice as often as others is fine.
        if matches!(kind, SourceKind::Arrays)
            && before
                .into_iter()
                .any(|other| input_error::is_same(path, other))
        {
            return wrong(format!("SOURCE names {word} twice; name it once"));
        }
    }
    Ok(())
}

/// The error for an empty dataset.
pub(super) fn no_samples(args: &Args) -> UsageError {
    let remedy = match args.field.is_empty() {
        true => "name files with rows",
        false => "name archives with files such as 0001.jpg and 0001.cls",
    };
    UsageError::new(format!(
        "SOURCE {} has no samples; {remedy}",
        args.source.join(", ")
    ))
}

fn explain(error: LoadError) -> anyhow::Error {
    if let LoadErrorKind::Tar(TarError::NoSuchExtension { .. }) = error.kind() {
        let message = format!("--field: {error}; use one of these");
        return failed(When::Opening, message);
    }
    let message = input_error::message(&error).unwrap_or_else(|| match error.kind() {
        LoadErrorKind::EmptyFolder => {
            let folder = error.file().unwrap_or(Path::new("")).display();
            format!("{folder}: the folder has no .tar, .npy or .safetensors file; name another")
        }
        // These already say what to do.
        LoadErrorKind::Tar(TarError::Compressed { .. })
        | LoadErrorKind::Header(HeaderError::TooLarge { .. }) => error.to_string(),
        _ => format!("{error}; name other files"),
    });
    failed(When::Opening, format!("cannot read SOURCE: {message}"))
}

pub(super) fn open(
    args: &Args,
    simulated: bool,
    interrupt: &Interrupt,
) -> anyhow::Result<Box<dyn Dataset>> {
    Ok(match kind(args)? {
        SourceKind::Synthetic => Box::new(synthetic::make(args, simulated, interrupt)?),
        SourceKind::Arrays => {
            let mut all: Option<Arrays> = None;
            for path in &args.source {
                let arrays = Arrays::open(path).map_err(explain)?;
                all = Some(match all {
                    None => arrays,
                    Some(others) => others.and(arrays).map_err(explain)?,
                });
            }
            Box::new(all.expect("clap requires a source"))
        }
        SourceKind::Tar => {
            let declared = args.field.iter().cloned();
            let config = declared.fold(TarConfig::new(), |config, declared| {
                config.field(declared.extension, declared.field)
            });
            Box::new(Tar::open(&args.source, config).map_err(explain)?)
        }
    })
}

fn kind(args: &Args) -> Result<SourceKind, UsageError> {
    if args.source.iter().any(|word| word == SYNTHETIC) {
        return match args.source.len() {
            1 => Ok(SourceKind::Synthetic),
            _ => wrong(
                "synthetic cannot be combined with files; use ./synthetic for a file of that name"
                    .into(),
            ),
        };
    }
    let archives = args.source.iter().filter(|path| is_tar(Path::new(path)));
    match archives.count() {
        0 => Ok(SourceKind::Arrays),
        all if all == args.source.len() => Ok(SourceKind::Tar),
        _ => wrong("SOURCE mixes archives and other files; use only one kind".to_owned()),
    }
}

/// Whether the path is named like an archive, or a folder with one.
fn is_tar(path: &Path) -> bool {
    let named = |path: &Path| {
        let extension = path.extension();
        extension.is_some_and(|extension| extension.eq_ignore_ascii_case("tar"))
    };
    if !path.is_dir() {
        return named(path);
    }
    // Opening the folder reports if it cannot be read.
    let entries = path.read_dir().into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| named(&path))
}

fn wrong<T>(reason: String) -> Result<T, UsageError> {
    Err(UsageError::new(reason))
}

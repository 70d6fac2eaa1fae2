//! Where samples come from.

use std::path::Path;

use pinlane::load::{
    Arrays, Dataset, HeaderError, LoadError, LoadErrorKind, Tar, TarConfig, TarError,
};

use super::{Args, synthetic};
use crate::interrupt::Interrupt;
use crate::output::UsageError;
use crate::source_file::{self, When, failed};

/// The word for samples that are made up.
const SYNTHETIC: &str = "synthetic";

/// What the words for the source come to.
enum Kind {
    Synthetic,
    Arrays,
    Tar,
}

/// Fails where words do not belong together, before anything is opened.
pub(super) fn check(args: &Args) -> Result<(), UsageError> {
    let kind = kind(args)?;
    if !matches!(kind, Kind::Synthetic) {
        check_paths(args, &kind)?;
    }
    let synthetic_only = [
        ("--shape", args.shape.is_some()),
        ("--samples", args.samples.is_some()),
        ("--dtype", args.dtype.is_some()),
    ];
    let given = synthetic_only.into_iter().find(|(_, given)| *given);
    match (kind, given) {
        (Kind::Arrays | Kind::Tar, Some((flag, _))) => wrong(format!(
            "{flag} is for SOURCE synthetic; files say themselves what they hold: leave it out"
        )),
        (Kind::Tar, None) if args.field.is_empty() => wrong(
            "archives do not say what they hold; add --field for each extension to read, such as \
             --field img=u8:3x224x224 --field cls=u8:..8 (text of up to 8 bytes)"
                .to_owned(),
        ),
        (Kind::Synthetic | Kind::Arrays, _) if !args.field.is_empty() => wrong(no_archive(args)),
        _ => Ok(()),
    }
}

/// There is --field, and no archive.
fn no_archive(args: &Args) -> String {
    let mut words = args.source.iter();
    let Some(folder) = words.find(|word| Path::new(word).is_dir()) else {
        return "--field is for tar archives; leave it out, or name .tar files as SOURCE"
            .to_owned();
    };
    let remedy = source_file::other_in(Path::new(folder));
    let remedy = remedy.unwrap_or("name a folder that has some, or leave out --field".to_owned());
    format!("--field is for tar archives, and SOURCE {folder} has no .tar file; {remedy}")
}

/// What is not there, and what is there twice.
fn check_paths(args: &Args, kind: &Kind) -> Result<(), UsageError> {
    for (number, word) in args.source.iter().enumerate() {
        let path = Path::new(word);
        if let Err(error) = path.metadata() {
            return wrong(format!(
                "SOURCE {word} cannot be opened: {error}; name files that are there, or synthetic"
            ));
        }
        let before = args.source[..number].iter().map(Path::new);
        // An archive may well be fed twice as often as others.
        if matches!(kind, Kind::Arrays)
            && before
                .into_iter()
                .any(|other| source_file::is_same(path, other))
        {
            return wrong(format!("SOURCE names {word} twice; name it once"));
        }
    }
    Ok(())
}

/// There is nothing to feed.
pub(super) fn no_samples(args: &Args) -> UsageError {
    let remedy = match args.field.is_empty() {
        true => "name files with rows in them",
        false => "name archives that hold files, such as 0001.jpg and 0001.cls",
    };
    UsageError::new(format!(
        "SOURCE {} has no samples; {remedy}",
        args.source.join(", ")
    ))
}

/// Why files cannot be fed.
fn cannot(error: LoadError) -> anyhow::Error {
    if let LoadErrorKind::Tar(TarError::NoSuchExtension { .. }) = error.kind() {
        let message = format!("--field: {error}; name one of these");
        return failed(When::Opening, message);
    }
    let message = source_file::told(&error).unwrap_or_else(|| match error.kind() {
        LoadErrorKind::EmptyFolder => {
            let folder = error.file().unwrap_or(Path::new("")).display();
            format!(
                "{folder}: the folder has no .tar, .npy or .safetensors file; name one that has"
            )
        }
        // These say themselves what to do, or ask.
        LoadErrorKind::Tar(TarError::Compressed { .. })
        | LoadErrorKind::Header(HeaderError::TooLarge { .. }) => error.to_string(),
        _ => format!("{error}; name other files"),
    });
    failed(When::Opening, format!("SOURCE cannot be fed: {message}"))
}

/// Open it.
pub(super) fn open(
    args: &Args,
    simulated: bool,
    interrupt: &Interrupt,
) -> anyhow::Result<Box<dyn Dataset>> {
    Ok(match kind(args)? {
        Kind::Synthetic => Box::new(synthetic::make(args, simulated, interrupt)?),
        Kind::Arrays => {
            let mut all: Option<Arrays> = None;
            for path in &args.source {
                let arrays = Arrays::open(path).map_err(cannot)?;
                all = Some(match all {
                    None => arrays,
                    Some(others) => others.and(arrays).map_err(cannot)?,
                });
            }
            Box::new(all.expect("the words name one at least"))
        }
        Kind::Tar => {
            let declared = args.field.iter().cloned();
            let config = declared.fold(TarConfig::new(), |config, declared| {
                config.field(declared.extension, declared.field)
            });
            Box::new(Tar::open(&args.source, config).map_err(cannot)?)
        }
    })
}

fn kind(args: &Args) -> Result<Kind, UsageError> {
    if args.source.iter().any(|word| word == SYNTHETIC) {
        return match args.source.len() {
            1 => Ok(Kind::Synthetic),
            _ => wrong("synthetic stands alone; write ./synthetic for a file of that name".into()),
        };
    }
    let archives = args.source.iter().filter(|path| is_tar(Path::new(path)));
    match archives.count() {
        0 => Ok(Kind::Arrays),
        all if all == args.source.len() => Ok(Kind::Tar),
        _ => wrong("SOURCE names archives and other files; feed either these or those".to_owned()),
    }
}

/// An archive by its name, or a folder that holds one.
fn is_tar(path: &Path) -> bool {
    let named = |path: &Path| {
        let extension = path.extension();
        extension.is_some_and(|extension| extension.eq_ignore_ascii_case("tar"))
    };
    if !path.is_dir() {
        return named(path);
    }
    // A folder that cannot be read is told when it is opened.
    let entries = path.read_dir().into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| named(&path))
}

fn wrong<T>(reason: String) -> Result<T, UsageError> {
    Err(UsageError::new(reason))
}

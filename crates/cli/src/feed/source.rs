//! Where samples come from.

use std::path::Path;

use pinlane::load::{Arrays, Dataset, Tar, TarConfig};

use super::{Args, synthetic};
use crate::interrupt::Interrupt;
use crate::output::UsageError;

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
             --field img=u8:3x224x224 --field cls=i64:"
                .to_owned(),
        ),
        (Kind::Synthetic | Kind::Arrays, _) if !args.field.is_empty() => wrong(
            "--field is for tar archives; leave it out, or name .tar files as SOURCE".to_owned(),
        ),
        _ => Ok(()),
    }
}

/// Open it.
pub(super) fn open(
    args: &Args,
    simulated: bool,
    interrupt: &Interrupt,
) -> anyhow::Result<Box<dyn Dataset>> {
    let cannot = |error: pinlane::load::LoadError| {
        UsageError::new(format!("SOURCE cannot be fed: {error}; name other files"))
    };
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

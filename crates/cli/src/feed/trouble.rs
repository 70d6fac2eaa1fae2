//! What is wrong, with the flag that it is about and what to do.

use pinlane::load::{FieldShape, LoadError, LoadErrorKind, LoaderError, TarError};
use pinlane_driver::ErrorKind;
use pinlane_report::Feed;

use super::Args;
use crate::output::UsageError;
use crate::source_file::{When, failed};

/// The error of a loader, with the flag that it is about and the remedy.
pub(super) fn explained(error: LoaderError, args: &Args) -> anyhow::Error {
    let remedy = match &error {
        LoaderError::Config { field, reason } => {
            let (flag, remedy) = match *field {
                "dataset" if args.field.is_empty() => {
                    ("SOURCE", "; choose other files, or rename one")
                }
                "dataset" => (
                    "--field",
                    "; give each extension once, with a size that fits",
                ),
                "device_transforms" => ("--normalize", ""),
                "prefetch" => ("--prefetch", ""),
                "workers" => ("--workers", ""),
                _ => ("--batch", ""),
            };
            return UsageError::new(format!("{flag}: {reason}{remedy}")).into();
        }
        LoaderError::Order(_) => {
            return UsageError::new(format!("--batch {}: {error}", args.batch)).into();
        }
        LoaderError::Sample { cause, .. } => {
            let field = any_length(cause.cause().downcast_ref());
            let field = field.map_or(String::new(), |field| format!("; {field}"));
            let message = format!("{error}{field}; --skip-bad leaves out such samples");
            return failed(When::Loading, message);
        }
        LoaderError::Setup(inner) | LoaderError::Device { error: inner, .. } => match inner {
            pinlane::Error::OverBudget { .. } => "choose a smaller --batch",
            pinlane::Error::Driver(inner) if matches!(inner.kind, ErrorKind::OutOfMemory) => {
                "choose a smaller --batch or --prefetch"
            }
            _ => return error.into(),
        },
        _ => return error.into(),
    };
    anyhow::anyhow!("{error}; {remedy}")
}

/// All samples were bad: why, and what may help.
pub(super) fn all_bad(report: &Feed, args: &Args) -> String {
    let first = report.first_skipped.first();
    let first = first.map_or(String::new(), |first| {
        format!(", the first, sample {}, since {}", first.index, first.why)
    });
    let remedy = match args.field.is_empty() {
        true => "look at SOURCE",
        false => {
            "see whether --field says what the files hold: text has other lengths than numbers, and \
             is taken by such as cls=u8:..8"
        }
    };
    let skipped = report.done.skipped;
    format!("--skip-bad left out all {skipped} samples{first}; {remedy}")
}

/// For a file that is shorter or longer than its field, the field that takes it.
fn any_length(cause: Option<&LoadError>) -> Option<String> {
    let LoadErrorKind::Tar(TarError::Length { bytes, field, .. }) = cause?.kind() else {
        return None;
    };
    let name = field.name();
    Some(match field.shape() {
        FieldShape::Variable { .. } => format!("--field {name}=u8:..{bytes} would take it"),
        FieldShape::Fixed(_) => {
            let room = bytes.checked_next_power_of_two().unwrap_or(*bytes).max(8);
            format!(
                "--field {name}=u8:..{room} takes files of any length up to {room} bytes, such as text"
            )
        }
    })
}

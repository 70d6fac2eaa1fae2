//! Errors with the flag that caused them, and what to do.

use pinlane::load::{FieldShape, LoadError, LoadErrorKind, LoaderError, TarError};
use pinlane_driver::ErrorKind;
use pinlane_report::Feed;

use super::Args;
use crate::input_error::{When, failed};
use crate::output::UsageError;

/// The error of a loader, with its flag and remedy.
pub(super) fn explain(error: LoaderError, args: &Args) -> anyhow::Error {
    let remedy = match &error {
        LoaderError::Config { field, reason } => {
            let (flag, remedy) = match *field {
                "dataset" if args.field.is_empty() => {
                    ("SOURCE", "; use other files, or rename one")
                }
                "dataset" => ("--field", "; give each extension once, with a valid size"),
                "finish" => ("--normalize", ""),
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
            let field = fitting_field(cause.cause().downcast_ref());
            let field = field.map_or(String::new(), |field| format!("; {field}"));
            let message = format!("{error}{field}; --skip-bad skips such samples");
            return failed(When::Loading, message);
        }
        LoaderError::Setup(inner) | LoaderError::Device { error: inner, .. } => match inner {
            pinlane::Error::OverBudget { .. } => "use a smaller --batch",
            pinlane::Error::Driver(inner) if matches!(inner.kind, ErrorKind::OutOfMemory) => {
                "use a smaller --batch or --prefetch"
            }
            _ => return error.into(),
        },
        _ => return error.into(),
    };
    anyhow::anyhow!("{error}; {remedy}")
}

/// The error if all samples were bad.
pub(super) fn all_skipped(report: &Feed, args: &Args) -> String {
    let first = report.first_skipped.first();
    let first = first.map_or(String::new(), |first| {
        format!("; the first is sample {}: {}", first.index, first.why)
    });
    let remedy = match args.field.is_empty() {
        true => "check SOURCE",
        false => {
            "check that --field matches the files: text varies in length, unlike numbers, and needs a \
             field such as cls=u8:..8"
        }
    };
    let skipped = report.done.skipped;
    format!("--skip-bad skipped all {skipped} samples{first}; {remedy}")
}

/// A field that fits a file which is shorter or longer than its field.
fn fitting_field(cause: Option<&LoadError>) -> Option<String> {
    let LoadErrorKind::Tar(TarError::Length { bytes, field, .. }) = cause?.kind() else {
        return None;
    };
    let name = field.name();
    Some(match field.shape() {
        FieldShape::Variable { .. } => format!("--field {name}=u8:..{bytes} would fit"),
        FieldShape::Fixed(_) => {
            let room = bytes.checked_next_power_of_two().unwrap_or(*bytes).max(8);
            format!(
                "--field {name}=u8:..{room} accepts any length up to {room} bytes, such as text"
            )
        }
    })
}

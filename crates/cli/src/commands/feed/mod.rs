//! `pinlane feed`: a dataset through the loader, as fast as possible.

mod args;
mod interval_log;
mod normalize;
mod report;
mod run;
mod shard_choice;
mod source;

use std::path::Path;

use pinlane::load::{
    Dataset, FieldShape, LoadError, LoadErrorKind, Loader, LoaderConfig, LoaderError, OnError,
    TarError,
};
use pinlane_driver::ErrorKind;
use pinlane_report::Feed;

use crate::clock::HostClock;
use crate::command_context::CommandContext;
use crate::input_error::{UsageError, When, failed};
use crate::interrupt::Interrupt;
use crate::output;
use crate::output_file;
pub(crate) use args::Args;
use report::SampleBytes;
use run::{Consumer, FeedRun};
use source::Interruptible;

pub(crate) fn run(args: &Args, context: &CommandContext<'_>) -> anyhow::Result<bool> {
    source::check(args)?;
    let inputs = args
        .source
        .iter()
        .map(Path::new)
        .chain(context.device.file());
    output_file::check(&[("--html", &args.html)], inputs)?;
    let shard = shard_choice::choose(args)?;
    let interrupt = Interrupt::listen()?;
    let backend = context.device.open_for_timing()?;
    let device = backend.device()?;
    let simulated = device.info().simulated.is_some();
    let dataset = source::open(args, simulated, &interrupt)?;
    let fields = dataset.fields();
    let normalize = args.normalize.as_ref();
    let normalize = normalize.map(|factors| normalize::step(factors, args.to, fields));
    let (transform, normalize) = normalize.transpose()?.unzip();
    let config = LoaderConfig::default()
        .batch(args.batch)
        .shuffle(!args.no_shuffle)
        .seed(args.seed)
        .shard(shard.shard)
        // A simulated clock would not time the threads of this machine.
        .workers(args.workers.or(simulated.then_some(0)))
        .prefetch(args.prefetch)
        .on_error(match args.skip_bad {
            true => OnError::Skip,
            false => OnError::Fail,
        })
        .device_transforms(transform.into_iter().collect());
    let end = args.end(simulated);
    let job = report::job(args, &dataset, &config, normalize, &shard, end);
    let sample_bytes = SampleBytes::new(dataset.fields());
    if dataset.is_empty() {
        return Err(source::no_samples(args).into());
    }
    let dataset = Interruptible {
        dataset,
        interrupt: interrupt.clone(),
    };
    let loader = Loader::new(&device, dataset, config).map_err(|error| explain(error, args))?;
    let consumer = args.kernel.map(|ns| Consumer::new(&device, ns));
    let run = FeedRun {
        device: &device,
        loader: &loader,
        clock: &HostClock::of(&backend),
        end,
        consumer: consumer.transpose()?,
        sample_bytes,
        interrupt: &interrupt,
    };
    let outcome = run.run().map_err(|error| match error.downcast() {
        Ok(error) => explain(error, args),
        Err(error) => error,
    })?;
    let mut report = report::feed(&backend, &device, &loader, job, &outcome);
    report.notes.extend(shard.note);
    let written = output_file::write_given(&args.html, || report.to_html(&context.environment()));
    context.report(
        |environment| report.to_json(environment),
        || report.to_text(),
    )?;
    // The results are printed even if a file cannot be written.
    written?;
    context.written([&args.html])?;
    if !report.complete {
        output::complain("interrupted before the end");
    } else if report.all_skipped() {
        output::complain(&format!("error: {}", all_skipped(&report, args)));
    }
    Ok(report.complete && !report.all_skipped())
}

fn explain(error: LoaderError, args: &Args) -> anyhow::Error {
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
            return UsageError(format!("{flag}: {reason}{remedy}")).into();
        }
        LoaderError::Order(_) => {
            return UsageError(format!("--batch {}: {error}", args.batch)).into();
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

fn all_skipped(report: &Feed, args: &Args) -> String {
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

//! `pinlane feed`: a dataset through the loader, as fast as it goes.

mod args;
mod bytes;
mod consumer;
mod course;
mod latency;
mod normalize;
mod progress;
mod report;
mod shard;
mod source;
mod synthetic;
mod trouble;
mod watched;
mod words;

use std::path::Path;

use pinlane::Device;
use pinlane::load::{Dataset, Loader, LoaderConfig, OnError};
use pinlane_report::{Feed, FeedJob};

use crate::device::{self, Choice, Target};
use crate::file;
use crate::interrupt::Interrupt;
use crate::measure::Clock;
use crate::output::{self, Output};
pub(crate) use args::Args;
use bytes::SampleBytes;
use consumer::Consumer;
use course::Course;
use normalize::Normalized;
use watched::Watched;

pub(crate) fn run(
    choice: &Choice,
    args: &Args,
    json: bool,
    output: &mut Output,
) -> anyhow::Result<bool> {
    source::check(args)?;
    let inputs = args.source.iter().map(Path::new).chain(choice.file());
    file::check(&[("--html", &args.html)], inputs)?;
    let part = shard::of(args)?;
    let interrupt = Interrupt::listen()?;
    let (target, _) = device::start_to_measure(choice)?;
    let device = Device::open(target.platform(), target.ordinal())?;
    let simulated = device.info().simulated.is_some();
    let dataset = source::open(args, simulated, &interrupt)?;
    let normalized = match &args.normalize {
        Some(factors) => Some(Normalized::new(factors, args.to, dataset.fields())?),
        None => None,
    };
    let config = LoaderConfig::default()
        .batch(args.batch)
        .shuffle(!args.no_shuffle)
        .seed(args.seed)
        .shard(part.shard)
        // Threads of this machine would run beside a clock that does not know of them.
        .workers(args.workers.or(simulated.then_some(0)))
        .prefetch(args.prefetch)
        .on_error(match args.skip_bad {
            true => OnError::Skip,
            false => OnError::Fail,
        })
        .device_transforms(normalized.iter().map(Normalized::step).collect());
    let end = args.end(simulated);
    let job = report::job(args, &dataset, &config, normalized.as_ref(), &part, end);
    let sample_bytes = SampleBytes::new(dataset.fields());
    if dataset.is_empty() {
        return Err(source::no_samples(args).into());
    }
    let dataset = Watched::new(dataset, &interrupt);
    let loader =
        Loader::new(&device, dataset, config).map_err(|error| trouble::explained(error, args))?;
    let mut report = feed(
        &target,
        &device,
        &loader,
        args,
        job,
        sample_bytes,
        &interrupt,
    )?;
    report.notes.extend(part.note);
    let written = match &args.html {
        Some(path) => file::write_text(path, &report.to_html()),
        None => Ok(()),
    };
    output.print(&match json {
        true => report.to_json(),
        false => report.to_text(),
    })?;
    // What was done is shown even where a file could not be written.
    written?;
    output.written([&args.html], json)?;
    if !report.complete {
        output::complain("interrupted: not all was fed");
    } else if report.all_skipped() {
        output::complain(&format!("error: {}", trouble::all_bad(&report, args)));
    }
    Ok(report.complete && !report.all_skipped())
}

fn feed(
    target: &Target,
    device: &Device,
    loader: &Loader,
    args: &Args,
    job: FeedJob,
    sample_bytes: SampleBytes,
    interrupt: &Interrupt,
) -> anyhow::Result<Feed> {
    let consumer = match args.kernel {
        Some(kernel_ns) => Some(Consumer::new(device, kernel_ns)?),
        None => None,
    };
    let clock = Clock::of(target);
    let end = args.end(device.info().simulated.is_some());
    let mut course = Course::new(
        device,
        loader,
        &clock,
        end,
        consumer,
        sample_bytes,
        interrupt,
    );
    let went = course.run().map_err(|error| match error.downcast() {
        Ok(error) => trouble::explained(error, args),
        Err(error) => error,
    })?;
    let stats = loader.stats();
    let pinned_bytes = device.stats().pinned_bytes;
    let mut report = report::feed(target, device, loader, job, &went, &stats);
    report.complete = went.complete;
    report.pinned_bytes = pinned_bytes;
    Ok(report)
}

//! `pinlane feed`: a dataset through the loader, as fast as possible.

mod args;
mod consumer;
mod errors;
mod interruptible;
mod latency;
mod normalize;
mod parse;
mod report;
mod run;
mod sample_bytes;
mod shard;
mod source;
mod synthetic;

use std::path::Path;

use pinlane::load::{Dataset, Loader, LoaderConfig, OnError};

use crate::cli::Cli;
use crate::clock::HostClock;
use crate::interrupt::Interrupt;
use crate::{output, output_file};
pub(crate) use args::Args;
use consumer::Consumer;
use interruptible::Interruptible;
use normalize::NormalizeStep;
use run::FeedRun;
use sample_bytes::SampleBytes;

pub(crate) fn run(args: &Args, cli: &mut Cli<'_>) -> anyhow::Result<bool> {
    source::check(args)?;
    let inputs = args.source.iter().map(Path::new).chain(cli.device.file());
    output_file::check(&[("--html", &args.html)], inputs)?;
    let shard = shard::choose(args)?;
    let interrupt = Interrupt::listen()?;
    let backend = cli.device.open_for_timing()?;
    let device = backend.device()?;
    let simulated = device.info().simulated.is_some();
    let dataset = source::open(args, simulated, &interrupt)?;
    let normalize = match &args.normalize {
        Some(factors) => Some(NormalizeStep::new(factors, args.to, dataset.fields())?),
        None => None,
    };
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
        .device_transforms(normalize.iter().map(NormalizeStep::transform).collect());
    let end = args.end(simulated);
    let job = report::job(args, &dataset, &config, normalize.as_ref(), &shard, end);
    let sample_bytes = SampleBytes::new(dataset.fields());
    if dataset.is_empty() {
        return Err(source::no_samples(args).into());
    }
    let dataset = Interruptible::new(dataset, &interrupt);
    let loader =
        Loader::new(&device, dataset, config).map_err(|error| errors::explain(error, args))?;
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
        Ok(error) => errors::explain(error, args),
        Err(error) => error,
    })?;
    let mut report = report::feed(&backend, &device, &loader, job, &outcome);
    report.notes.extend(shard.note);
    let written = output_file::write_given(&args.html, || report.to_html());
    cli.report(|| report.to_json(), || report.to_text())?;
    // The results are printed even if a file cannot be written.
    written?;
    cli.written([&args.html])?;
    if !report.complete {
        output::complain("interrupted before the end");
    } else if report.all_skipped() {
        output::complain(&format!("error: {}", errors::all_skipped(&report, args)));
    }
    Ok(report.complete && !report.all_skipped())
}

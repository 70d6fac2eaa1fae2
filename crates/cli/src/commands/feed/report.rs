//! The report.

use pinlane::Device;
use pinlane::load::{Dataset, Field, FieldShape, Loader, LoaderConfig, SkippedSample};
use pinlane_report::{
    Feed, FeedDone, FeedField, FeedHost, FeedJob, FeedLink, FeedSkipped, FeedTarget,
};

use super::normalize::NormalizeStep;
use super::run::{End, FeedOutcome};
use super::shard::ShardChoice;
use super::{Args, latency, sample_bytes};
use crate::device::{self, Backend};

/// The job. The number of workers is not known before the loader exists.
pub(super) fn job(
    args: &Args,
    dataset: &dyn Dataset,
    config: &LoaderConfig,
    normalize: Option<&NormalizeStep>,
    shard: &ShardChoice,
    end: End,
) -> FeedJob {
    FeedJob {
        source: args.source.join(", "),
        dataset_samples: dataset.len() as u64,
        fields: dataset.fields().iter().map(field).collect(),
        batch: config.batch as u64,
        shuffle: config.shuffle,
        seed: config.seed,
        workers: 0,
        prefetch: config.prefetch as u64,
        shard: shard.report(dataset.len(), config),
        target: FeedTarget {
            epochs: end.epochs,
            time_ns: end.time_ns,
        },
        skip_bad: args.skip_bad,
        normalize: normalize.map(NormalizeStep::report),
        kernel_ns: args.kernel,
    }
}

fn field(field: &Field) -> FeedField {
    let shape = match field.shape() {
        FieldShape::Fixed(shape) => Some(shape.iter().map(|dim| *dim as u64).collect()),
        FieldShape::Variable { .. } => None,
    };
    FeedField {
        name: field.name().to_owned(),
        dtype: field.dtype().name().to_owned(),
        shape,
        bytes: sample_bytes::max_bytes(field),
    }
}

fn skipped(skipped: &SkippedSample) -> FeedSkipped {
    FeedSkipped {
        index: skipped.index as u64,
        why: skipped.reason.clone(),
    }
}

pub(super) fn feed(
    backend: &Backend,
    device: &Device,
    loader: &Loader,
    job: FeedJob,
    outcome: &FeedOutcome,
) -> Feed {
    let (info, stats) = (device.info(), loader.stats());
    let pinned_bytes = device.stats().pinned_bytes;
    let workers = loader.workers() as u64;
    // A simulated clock does not time real worker threads, and that of a simulated libcuda cannot be read.
    let clock_is_valid = match (&info.simulated, backend.sim()) {
        (None, _) => true,
        (Some(_), Some(_)) => workers == 0,
        (Some(_), None) => false,
    };
    let (sample_bytes, sample_batches) = outcome.sample_bytes;
    let done = FeedDone {
        epochs: outcome.epochs,
        batches: stats.batches,
        samples: stats.samples,
        skipped: stats.skipped,
        sample_bytes,
        sample_batches,
        moved_bytes: stats.bytes,
        elapsed_ns: clock_is_valid.then_some(outcome.elapsed_ns),
        first_batch_ns: outcome.first_batch_ns.filter(|_| clock_is_valid),
    };
    let one_byte_ns = match outcome.complete && clock_is_valid {
        true => latency::one_byte_ns(device).ok(),
        false => None,
    };
    let link = FeedLink {
        copy_ns: stats.copy_ns,
        copy_bytes: stats.copy_bytes,
        one_byte_ns,
    };
    let host = FeedHost {
        threads: workers.max(1),
        wall_ns: outcome.wall_ns,
        read_ns: stats.read_ns,
        slot_wait_ns: stats.slot_wait_ns,
        held_back_ns: stats.held_back_ns,
        consumer_wait_ns: stats.consumer_wait_ns,
    };
    let job = FeedJob { workers, ..job };
    let kernel = outcome.kernel.filter(|_| clock_is_valid);
    let mut report = Feed::new(device::origin(device), job, done, link, host, kernel);
    report.first_skipped = outcome.first_skipped.iter().map(skipped).collect();
    if info.simulated.is_some() && !clock_is_valid {
        report.notes.push(
            "No rates, because real worker threads ran beside the simulated clock; drop --workers to get \
             rates"
                .to_owned(),
        );
    }
    if outcome.timeless {
        report.notes.push(
            "Ran one epoch, because nothing takes time on this device; pass --epochs for more"
                .to_owned(),
        );
    }
    report.complete = outcome.complete;
    report.pinned_bytes = pinned_bytes;
    report
}

//! What the report says.

use pinlane::Device;
use pinlane::load::{Dataset, Field, FieldShape, Loader, LoaderConfig, LoaderStats, SkippedSample};
use pinlane_report::{
    Feed, FeedAsked, FeedDone, FeedField, FeedHost, FeedJob, FeedLink, FeedSkipped, Origin,
};

use super::course::{End, Went};
use super::normalize::Normalized;
use super::shard::Part;
use super::{Args, bytes, latency};
use crate::device::Target;

/// What is to be done; the number of threads comes with the loader.
pub(super) fn job(
    args: &Args,
    dataset: &dyn Dataset,
    config: &LoaderConfig,
    normalized: Option<&Normalized>,
    part: &Part,
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
        shard: part.told(dataset.len(), config),
        asked: FeedAsked {
            epochs: end.epochs,
            time_ns: end.time_ns,
        },
        skip_bad: args.skip_bad,
        normalize: normalized.map(Normalized::told),
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
        bytes: bytes::at_most(field),
    }
}

fn skipped(skipped: &SkippedSample) -> FeedSkipped {
    FeedSkipped {
        index: skipped.index as u64,
        why: skipped.reason.clone(),
    }
}

/// What came of it.
pub(super) fn feed(
    target: &Target,
    device: &Device,
    loader: &Loader,
    job: FeedJob,
    went: &Went,
    stats: &LoaderStats,
) -> Feed {
    let info = device.info();
    let workers = loader.workers() as u64;
    // Where threads of this machine run beside a simulated clock, its time means nothing; and that of
    // a simulated device behind the name of a real one cannot be read from here.
    let clock_counts = match (&info.simulated, target.sim()) {
        (None, _) => true,
        (Some(_), Some(_)) => workers == 0,
        (Some(_), None) => false,
    };
    let (sample_bytes, sample_batches) = went.sample_bytes;
    let done = FeedDone {
        epochs: went.epochs,
        batches: stats.batches,
        samples: stats.samples,
        skipped: stats.skipped,
        sample_bytes,
        sample_batches,
        moved_bytes: stats.bytes,
        elapsed_ns: clock_counts.then_some(went.elapsed_ns),
        first_batch_ns: went.first_batch_ns.filter(|_| clock_counts),
    };
    // It says nothing of copies beside which threads of this machine ran.
    let one_byte_ns = match went.complete && clock_counts {
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
        wall_ns: went.wall_ns,
        read_ns: stats.read_ns,
        slot_wait_ns: stats.slot_wait_ns,
        held_back_ns: stats.held_back_ns,
        consumer_wait_ns: stats.consumer_wait_ns,
    };
    let origin = Origin::new(&info.name, info.simulated.clone());
    let job = FeedJob { workers, ..job };
    let kernel = went.kernel.filter(|_| clock_counts);
    let mut report = Feed::new(origin, job, done, link, host, kernel);
    report.first_skipped = went.first_skipped.iter().map(skipped).collect();
    if info.simulated.is_some() && !clock_counts {
        report.notes.push(
            "Threads of this machine ran beside the simulated clock, so there are no rates; leave \
             out --workers for them"
                .to_owned(),
        );
    }
    if went.timeless {
        report.notes.push(
            "Nothing takes time on this device, so one epoch was run; give --epochs for more"
                .to_owned(),
        );
    }
    report
}

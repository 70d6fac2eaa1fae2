//! The report.

use pinlane::Device;
use pinlane::load::{Batch, Dataset, Field, FieldShape, Loader, LoaderConfig, LoaderStats};
use pinlane_model::median;
use pinlane_report::{
    Feed, FeedDone, FeedField, FeedHost, FeedJob, FeedLink, FeedNormalize, FeedSkipped, FeedTarget,
};

use super::Args;
use super::run::FeedOutcome;
use super::shard_choice::ShardChoice;
use crate::device::{self, Backend};

/// The job. The number of workers is not known before the loader exists.
pub(super) fn job(
    args: &Args,
    dataset: &dyn Dataset,
    config: &LoaderConfig,
    normalize: Option<FeedNormalize>,
    shard: &ShardChoice,
    target: FeedTarget,
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
        target,
        skip_bad: args.skip_bad,
        normalize,
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
        bytes: max_bytes(field),
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
    let clock_is_valid = match (&info.simulated, backend.sim.as_ref()) {
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
        true => one_byte_ns(device).ok(),
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
    let mut report = Feed::new(device::origin(device.info()), job, done, link, host, kernel);
    let skipped = outcome.first_skipped.iter().map(|skipped| FeedSkipped {
        index: skipped.index as u64,
        why: skipped.reason.clone(),
    });
    report.first_skipped = skipped.collect();
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
    if clock_is_valid {
        report.intervals.clone_from(&outcome.intervals);
    }
    report.complete = outcome.complete;
    report.pinned_bytes = pinned_bytes;
    report
}

/// Copies whose median counts.
const COPIES: usize = 15;

/// Keeps the stream busy while the measured copy is submitted: the loader also submits its copies ahead.
const AHEAD_BYTES: usize = 4 << 20;

/// The time of a 1-byte copy to the device, by the device's clock.
fn one_byte_ns(device: &Device) -> pinlane::Result<u64> {
    let stream = device.stream()?;
    let stopwatch = device.stopwatch()?;
    let mut target = device.alloc::<u8>(1)?;
    let mut source = device.pinned::<u8>(1)?;
    let mut ahead_target = device.alloc::<u8>(AHEAD_BYTES)?;
    let mut ahead_source = device.pinned::<u8>(AHEAD_BYTES)?;
    let mut times = Vec::with_capacity(COPIES);
    for _ in 0..COPIES {
        let ahead = stream.upload(ahead_source, &mut ahead_target)?;
        let copy = stream.timed(&stopwatch).upload(source, &mut target)?;
        source = copy.wait()?;
        ahead_source = ahead.wait()?;
        times.push(stopwatch.elapsed_ns()?);
    }
    Ok(median(times))
}

/// Counts the bytes of samples, without the loader's padding.
pub(super) struct SampleBytes {
    /// The fields of the dataset: those of a batch may be converted.
    fields: Vec<Field>,
    batches: u64,
    bytes: u64,
}

impl SampleBytes {
    pub(super) fn new(fields: &[Field]) -> Self {
        Self {
            fields: fields.to_vec(),
            batches: 0,
            bytes: 0,
        }
    }

    pub(super) fn add(&mut self, batch: &Batch) {
        self.batches += 1;
        for (field, original) in batch.fields().zip(&self.fields) {
            let last = field.offsets().and_then(|offsets| offsets.last());
            self.bytes += match last {
                Some(elements) => bytes(*elements, original),
                None => max_bytes(original) * batch.len() as u64,
            };
        }
    }

    /// The bytes, and the batches that they are in: all batches if samples have a fixed size, otherwise only
    /// those counted, because the sizes of the others are unknown.
    pub(super) fn total(&self, stats: &LoaderStats) -> (u64, u64) {
        let is_fixed = |field: &Field| matches!(field.shape(), FieldShape::Fixed(_));
        match self.fields.iter().all(is_fixed) {
            true => {
                let sample_bytes: u64 = self.fields.iter().map(max_bytes).sum();
                (stats.samples * sample_bytes, stats.batches)
            }
            false => (self.bytes, self.batches),
        }
    }
}

/// The most bytes that a field of one sample takes.
fn max_bytes(field: &Field) -> u64 {
    let elements = match field.shape() {
        FieldShape::Fixed(shape) => {
            let dims = shape.iter().map(|dim| *dim as u64);
            dims.fold(1, u64::saturating_mul)
        }
        FieldShape::Variable { at_most } => *at_most as u64,
    };
    bytes(elements, field)
}

fn bytes(elements: u64, field: &Field) -> u64 {
    elements.saturating_mul(field.dtype().bits()).div_ceil(8)
}

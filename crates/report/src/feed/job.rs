//! What was to be done.

use serde::Serialize;

use super::shard::FeedShard;
use crate::format::amount;
use crate::timeline::layout::words::{clean, clip, duration};

/// What a sample is made of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FeedField {
    /// Its name.
    pub name: String,
    /// Type of its elements, as the dataset has it.
    pub dtype: String,
    /// Its shape; `None` where samples differ in length.
    pub shape: Option<Vec<u64>>,
    /// Bytes in a sample, at most.
    pub bytes: u64,
}

/// When it was to end: whichever comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct FeedAsked {
    /// After so many epochs.
    pub epochs: Option<u64>,
    /// After this time.
    pub time_ns: Option<u64>,
}

/// A field of bytes that the device made numbers of: each byte x became (x / 255 - mean) / std.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FeedNormalize {
    /// The field.
    pub field: String,
    /// Type of the numbers.
    pub to: String,
    /// For each channel, of numbers from 0 to 1.
    pub mean: Vec<f32>,
    /// For each channel, of numbers from 0 to 1.
    pub std: Vec<f32>,
    /// Elements of one channel that lie in a row: 1 where the channels are the last dimension.
    pub inner: u64,
}

/// What was to be done.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FeedJob {
    /// The dataset, as the user named it.
    pub source: String,
    /// Samples of the dataset.
    pub dataset_samples: u64,
    /// What each is made of.
    pub fields: Vec<FeedField>,
    /// Samples of a batch.
    pub batch: u64,
    /// Whether they came in an order that the seed says.
    pub shuffle: bool,
    /// The seed.
    pub seed: u64,
    /// Threads that read; 0 where the one that asks for batches did.
    pub workers: u64,
    /// Batches that were made ready ahead.
    pub prefetch: u64,
    /// Which part of the samples was for this process.
    pub shard: FeedShard,
    /// When it was to end.
    pub asked: FeedAsked,
    /// Whether bad samples were left out.
    pub skip_bad: bool,
    /// What the device made of a field.
    pub normalize: Option<FeedNormalize>,
    /// Time of the kernel that stood for the consumer's work on a batch.
    pub kernel_ns: Option<u64>,
}

/// Fields that a line names; the others are counted.
const NAMED_AT_MOST: usize = 4;

impl FeedJob {
    /// The dataset, in one line without its end.
    fn dataset_line(&self) -> String {
        let bytes = self.fields.iter().map(|field| field.bytes);
        let bytes = bytes.fold(0, u64::saturating_add);
        let mut fields: Vec<String> = self.fields.iter().map(FeedField::words).collect();
        if fields.len() > NAMED_AT_MOST {
            let more = fields.len() - NAMED_AT_MOST;
            fields.truncate(NAMED_AT_MOST);
            fields.push(format!("{more} more"));
        }
        let at_most = match self.fields.iter().any(|field| field.shape.is_none()) {
            true => "at most ",
            false => "",
        };
        format!(
            "{}: {}, {at_most}{} each ({})",
            clean(&self.source),
            counted(self.dataset_samples, "sample"),
            amount(bytes),
            fields.join(", ")
        )
    }

    /// How it was loaded, in one line without its end.
    fn way_line(&self) -> String {
        let order = match self.shuffle {
            true => format!("shuffled by seed {}", self.seed),
            false => "in their order".to_owned(),
        };
        let readers = match self.workers {
            0 => "read by the thread that asks for them".to_owned(),
            threads => format!("read by {}", counted(threads, "thread")),
        };
        format!(
            "Batches of {}, {order}, {readers}, {} ahead",
            self.batch, self.prefetch
        )
    }

    /// The job in some lines without their ends.
    pub(super) fn lines(&self) -> Vec<String> {
        let lines = [self.dataset_line(), self.way_line()].into_iter();
        let more = [self.shard.line(), self.device_line()];
        lines.chain(more.into_iter().flatten()).collect()
    }

    /// What the device does with batches, if anything, in one line without its end.
    fn device_line(&self) -> Option<String> {
        let normalize = self.normalize.as_ref().map(FeedNormalize::words);
        let kernel = self
            .kernel_ns
            .map(|ns| format!("a kernel of {} a batch", duration(ns)));
        let parts: Vec<String> = normalize.into_iter().chain(kernel).collect();
        (!parts.is_empty()).then(|| format!("On the device: {}", parts.join(", then ")))
    }
}

impl FeedAsked {
    /// That it ended before, in words without a full stop.
    pub(super) fn interrupted(&self) -> String {
        let epochs = self.epochs.map(|epochs| counted(epochs, "epoch"));
        let asked: Vec<String> = epochs
            .into_iter()
            .chain(self.time_ns.map(duration))
            .collect();
        match asked.is_empty() {
            true => "this is what was done until then".to_owned(),
            false => format!(
                "this is what was done until then, of {}",
                asked.join(" or ")
            ),
        }
    }
}

impl FeedNormalize {
    fn words(&self) -> String {
        let to = clean(&self.to).to_lowercase();
        format!("{} normalised to {to}", clean(&self.field))
    }
}

impl FeedField {
    fn words(&self) -> String {
        let name = clip(&clean(&self.name), 40, '…');
        let dtype = clean(&self.dtype).to_lowercase();
        match &self.shape {
            None => format!("{name} {dtype} of any length"),
            Some(shape) if shape.is_empty() => format!("{name} {dtype}"),
            Some(shape) => {
                let dims: Vec<String> = shape.iter().map(u64::to_string).collect();
                format!("{name} {dtype} {}", dims.join("×"))
            }
        }
    }
}

/// `1 batch`, `2 samples`.
pub(super) fn counted(count: u64, what: &str) -> String {
    let plural = match (count, what) {
        (1, _) => "",
        (_, "batch") => "es",
        _ => "s",
    };
    format!("{count} {what}{plural}")
}

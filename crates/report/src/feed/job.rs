//! The job of a feed.

use serde::Serialize;

use crate::format::{counted, duration, short_size};
use crate::text_layout::{clip, sanitize};

/// A field of a sample.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FeedField {
    /// Its name.
    pub name: String,
    /// Element type in the dataset.
    pub dtype: String,
    /// Shape; `None` if samples differ in length.
    pub shape: Option<Vec<u64>>,
    /// Maximum bytes per sample.
    pub bytes: u64,
}

/// When to stop: whichever comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct FeedTarget {
    /// Number of epochs.
    pub epochs: Option<u64>,
    /// Time.
    pub time_ns: Option<u64>,
}

/// A field of bytes normalized on the device: each byte x becomes (x / 255 - mean) / std.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FeedNormalize {
    /// The field.
    pub field: String,
    /// Resulting type.
    pub to: String,
    /// Mean of each channel, of values from 0 to 1.
    pub mean: Vec<f32>,
    /// Standard deviation of each channel.
    pub std: Vec<f32>,
    /// Consecutive elements of a channel: 1 if channels are the last dimension.
    pub inner: u64,
}

/// The part of the samples for this process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FeedShard {
    /// Rank, from 0.
    pub rank: u64,
    /// Number of ranks.
    pub world: u64,
    /// Where the rank comes from: flags or a launcher's variables. Empty without ranks.
    pub from: Vec<String>,
    /// Repeated samples of an epoch, over all ranks, so that all ranks have the same number.
    pub padding_samples: u64,
}

/// The job of a feed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FeedJob {
    /// The dataset, as named by the user.
    pub source: String,
    /// Samples of the dataset.
    pub dataset_samples: u64,
    /// Fields of a sample.
    pub fields: Vec<FeedField>,
    /// Samples per batch.
    pub batch: u64,
    /// Whether samples are shuffled.
    pub shuffle: bool,
    /// Seed of the shuffle.
    pub seed: u64,
    /// Reading threads; 0 if the consumer reads.
    pub workers: u64,
    /// Batches prepared ahead.
    pub prefetch: u64,
    /// The part of the samples for this process.
    pub shard: FeedShard,
    /// When to stop.
    #[serde(rename = "asked")]
    pub target: FeedTarget,
    /// Whether bad samples are skipped.
    pub skip_bad: bool,
    /// Normalization on the device.
    pub normalize: Option<FeedNormalize>,
    /// Time of the kernel that stands for the consumer's work on a batch.
    pub kernel_ns: Option<u64>,
}

/// Fields named in a line; the others are counted.
const NAMED_MAX: usize = 4;

impl FeedJob {
    /// The dataset, as a line without newline.
    fn dataset_line(&self) -> String {
        let bytes = self.fields.iter().map(|field| field.bytes);
        let bytes = bytes.fold(0, u64::saturating_add);
        let mut fields: Vec<String> = self.fields.iter().map(FeedField::label).collect();
        if fields.len() > NAMED_MAX {
            let more = fields.len() - NAMED_MAX;
            fields.truncate(NAMED_MAX);
            fields.push(format!("{more} more"));
        }
        let at_most = match self.fields.iter().any(|field| field.shape.is_none()) {
            true => "up to ",
            false => "",
        };
        format!(
            "{}: {}, {at_most}{} each ({})",
            sanitize(&self.source),
            counted(self.dataset_samples, "sample"),
            short_size(bytes),
            fields.join(", ")
        )
    }

    /// How it is loaded, as a line without newline.
    fn way_line(&self) -> String {
        let order = match self.shuffle {
            true => format!("shuffled by seed {}", self.seed),
            false => "in order".to_owned(),
        };
        let readers = match self.workers {
            0 => "read by the consumer".to_owned(),
            threads => format!("read by {}", counted(threads, "thread")),
        };
        format!(
            "Batches of {}, {order}, {readers}, {} ahead",
            self.batch, self.prefetch
        )
    }

    /// The job as lines without newlines.
    pub(super) fn lines(&self) -> Vec<String> {
        let lines = [self.dataset_line(), self.way_line()].into_iter();
        let more = [self.shard.line(), self.device_line()];
        lines.chain(more.into_iter().flatten()).collect()
    }

    /// Work on the device, if any, as a line without newline.
    fn device_line(&self) -> Option<String> {
        let normalize = self.normalize.as_ref().map(FeedNormalize::label);
        let kernel = self.kernel_ns.map(duration);
        let kernel = kernel.map(|time| format!("a kernel of {time} per batch"));
        let parts: Vec<String> = normalize.into_iter().chain(kernel).collect();
        (!parts.is_empty()).then(|| format!("On the device: {}", parts.join(", then ")))
    }
}

impl FeedTarget {
    /// What is left after an interruption, without a full stop.
    pub(super) fn interrupted(&self) -> String {
        let epochs = self.epochs.map(|epochs| counted(epochs, "epoch"));
        let time = self.time_ns.map(duration);
        let target: Vec<String> = epochs.into_iter().chain(time).collect();
        let target = match target.is_empty() {
            true => String::new(),
            false => format!("; target: {}", target.join(" or ")),
        };
        format!("results up to the interruption{target}")
    }
}

impl FeedNormalize {
    fn label(&self) -> String {
        let to = sanitize(&self.to).to_lowercase();
        format!("{} normalized to {to}", sanitize(&self.field))
    }
}

impl FeedField {
    fn label(&self) -> String {
        let name = clip(&sanitize(&self.name), 40, '…');
        let dtype = sanitize(&self.dtype).to_lowercase();
        match &self.shape {
            None => format!("{name} {dtype} of variable length"),
            Some(shape) if shape.is_empty() => format!("{name} {dtype}"),
            Some(shape) => {
                let dims: Vec<String> = shape.iter().map(u64::to_string).collect();
                format!("{name} {dtype} {}", dims.join("×"))
            }
        }
    }
}

impl FeedShard {
    /// A single process.
    #[must_use]
    pub fn whole() -> Self {
        Self {
            rank: 0,
            world: 1,
            from: Vec::new(),
            padding_samples: 0,
        }
    }

    /// One line without newline; `None` without ranks.
    pub(super) fn line(&self) -> Option<String> {
        if self.world <= 1 && self.from.is_empty() {
            return None;
        }
        let mut line = format!("Rank {} of {}", self.rank, self.world);
        if !self.from.is_empty() {
            line.push_str(&format!(", from {}", sanitize(&self.from.join(" and "))));
        }
        if self.padding_samples > 0 {
            let repeated = counted(self.padding_samples, "sample");
            line +=
                &format!("; {repeated} per epoch repeated, so that all ranks have the same number");
        }
        Some(line)
    }
}

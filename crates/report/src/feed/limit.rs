//! Which stage limits, and what would help.

use serde::Serialize;

use super::Feed;
use crate::Origin;
use crate::format::{amount, byte_rate};
use crate::timeline::layout::words::{duration, percent};

/// A GPU that is idle less than this has all that it needs.
const FED_IDLE_SHARE: f64 = 0.05;

/// A link that is busy more than this carries about as much as it can.
const FULL_BUSY_SHARE: f64 = 0.8;

/// Where less of the time than this is known, the rest is what counts.
const HALF: f64 = 0.5;

/// Where more of a copy than this is its latency, longer copies would be better.
const LATENCY_SHARE: f64 = 0.25;

/// Memory comes with the first batches: of so few nobody can tell what the others would take.
const STARTING_BATCHES: u64 = 8;

/// What keeps a dataset from coming faster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedLimit {
    /// The consumer's work on the GPU: batches come as fast as it takes them.
    Kernel,
    /// The link to the device.
    Link,
    /// What a copy takes whatever its size.
    Latency,
    /// What every batch takes beside its copy.
    Batches,
    /// Waiting for copies, of which each is too small to fill the link.
    Copies,
    /// Reading samples.
    Dataset,
    /// Whoever takes the batches.
    Consumer,
    /// What comes before the first batch, and beside the stages: too little was fed to tell.
    Start,
}

impl Feed {
    pub(super) fn find_limit(&self) -> Option<FeedLimit> {
        if self.done.batches == 0 || self.done.samples == 0 {
            return None;
        }
        if self.start_share() >= HALF {
            return Some(FeedLimit::Start);
        }
        if self
            .gpu_idle_share
            .is_some_and(|idle| idle < FED_IDLE_SHARE)
        {
            return Some(FeedLimit::Kernel);
        }
        let busy = self.link_busy_share?;
        if busy.max(self.busy_since_the_first()) >= FULL_BUSY_SHARE {
            return Some(self.link_or_latency());
        }
        if !matches!(self.origin, Origin::Measured { .. }) {
            // Nothing else takes time there but getting memory and calling the driver.
            return Some(self.start_or_batches());
        }
        let host = &self.host;
        let known = self.stages.iter().filter(|stage| stage.is_known());
        if known.map(|stage| stage.share).sum::<f64>() < HALF {
            return Some(self.start_or_batches());
        }
        let stages = [
            (host.read_ns, FeedLimit::Dataset),
            (host.slot_wait_ns, FeedLimit::Copies),
            (host.held_back_ns, FeedLimit::Consumer),
        ];
        let longest = stages.into_iter().max_by_key(|(ns, _)| *ns);
        longest.map(|(_, limit)| match limit {
            FeedLimit::Copies if self.link_or_latency() == FeedLimit::Latency => FeedLimit::Latency,
            limit => limit,
        })
    }

    /// What makes copies take the time that they take.
    fn link_or_latency(&self) -> FeedLimit {
        let one_byte_ns = self.link.one_byte_ns.unwrap_or(0);
        match one_byte_ns as f64 >= LATENCY_SHARE * self.copy_ns() as f64 {
            true => FeedLimit::Latency,
            false => FeedLimit::Link,
        }
    }

    /// What the time went into that no stage knows of.
    fn start_or_batches(&self) -> FeedLimit {
        match self.done.batches <= STARTING_BATCHES {
            true => FeedLimit::Start,
            false => FeedLimit::Batches,
        }
    }

    /// How much of the time the first batch took to come.
    fn start_share(&self) -> f64 {
        let first_ns = self.done.first_batch_ns.unwrap_or(0) as f64;
        first_ns / self.done.elapsed_ns.unwrap_or(0).max(1) as f64
    }

    /// Share of the time behind the first batch for which the link was busy with the others.
    fn busy_since_the_first(&self) -> f64 {
        let first_ns = self.done.first_batch_ns.unwrap_or(0);
        let since_ns = self.done.elapsed_ns.unwrap_or(0).saturating_sub(first_ns);
        let copies_ns = self.link.copy_ns - self.copy_ns();
        (copies_ns as f64 / since_ns.max(1) as f64).min(1.0)
    }

    /// Time of a copy, on average.
    fn copy_ns(&self) -> u64 {
        self.link.copy_ns / self.done.batches.max(1)
    }

    /// Which stage limits and what would help, in sentences; empty where nothing was done.
    #[must_use]
    pub fn advice(&self) -> Vec<String> {
        let Some(limit) = self.limit else {
            return Vec::new();
        };
        let busy = percent(self.link_busy_share.unwrap_or(0.0));
        let sentences = match limit {
            FeedLimit::Kernel => [
                "The GPU's own work limits: batches come as fast as it takes them.".to_owned(),
                "Nothing is gained by a faster feed.".to_owned(),
            ],
            FeedLimit::Link => [
                match self.link_gb_per_s {
                    Some(gb_per_s) => format!(
                        "The link limits: it was busy {busy} of the time, at {}.",
                        byte_rate(gb_per_s)
                    ),
                    None => format!("The link limits: it was busy {busy} of the time."),
                },
                self.fewer_bytes().to_owned(),
            ],
            FeedLimit::Latency => [
                format!(
                    "The latency of copies limits, more than the link's rate: a copy of {} takes {}, \
                     one of 1 byte {}.",
                    amount(self.link.copy_bytes / self.done.batches.max(1)),
                    duration(self.copy_ns()),
                    duration(self.link.one_byte_ns.unwrap_or(0))
                ),
                "A larger --batch makes fewer and longer copies.".to_owned(),
            ],
            FeedLimit::Batches => [
                format!(
                    "What every batch takes beside its copy limits: {} a batch, of which the copy is {}.",
                    duration(self.done.elapsed_ns.unwrap_or(0) / self.done.batches.max(1)),
                    duration(self.copy_ns())
                ),
                "A larger --batch makes fewer of them.".to_owned(),
            ],
            FeedLimit::Copies => [
                format!(
                    "Waiting for copies limits, though the link was busy only {busy} of the time."
                ),
                "A larger --batch makes fewer and longer copies; a run that is longer (--time) \
                 hides what the start takes."
                    .to_owned(),
            ],
            FeedLimit::Dataset => [
                format!("Reading samples limits; the link was busy only {busy} of the time.",),
                "More --workers help as long as there are CPUs for them; after that, a faster \
                 source does: samples that need less decoding, files on a faster disk or in memory."
                    .to_owned(),
            ],
            FeedLimit::Start => [
                "Starting took most of the time: too little was fed to tell what limits."
                    .to_owned(),
                "Feed more, with --epochs or --time, or from a larger source.".to_owned(),
            ],
            FeedLimit::Consumer => [
                "The consumer limits: threads waited for it to take batches.".to_owned(),
                "A larger --batch has it take fewer; a larger --prefetch evens out batches that \
                 take it longer."
                    .to_owned(),
            ],
        };
        sentences.into()
    }

    fn fewer_bytes(&self) -> &'static str {
        let largest = self.job.fields.iter().max_by_key(|field| field.bytes);
        let bytes_alone = largest.is_none_or(|field| {
            let dtype = field.dtype.to_ascii_lowercase();
            ["u8", "i8", "bool"].contains(&dtype.as_str())
        });
        match bytes_alone {
            true => "Only fewer bytes a sample would make it faster: smaller samples.",
            false => {
                "Only fewer bytes a sample would make it faster: smaller elements, such as u8 with \
                 --normalize, which makes numbers of them on the device."
            }
        }
    }
}

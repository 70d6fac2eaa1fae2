//! Which stage limits a feed, and what would help.

use serde::Serialize;

use super::Feed;
use crate::format::{byte_rate, duration, percent, short_size};

/// A GPU idle for less than this is fully fed.
const FED_IDLE_SHARE: f64 = 0.05;

/// A link busy for more than this is saturated.
const FULL_BUSY_SHARE: f64 = 0.8;

/// If less of the time than this is known, the rest decides.
const HALF: f64 = 0.5;

/// If latency is more than this share of a copy, larger copies help.
const LATENCY_SHARE: f64 = 0.25;

/// The first batches allocate memory; this few do not show the rate of the others.
const STARTING_BATCHES: u64 = 8;

/// What limits a feed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedLimit {
    /// The consumer's work on the GPU: batches arrive as fast as it takes them.
    Kernel,
    /// The link to the device.
    Link,
    /// The fixed cost of a copy.
    Latency,
    /// The fixed cost of a batch, other than its copy.
    Batches,
    /// Waiting for copies that are too small to saturate the link.
    Copies,
    /// Reading samples.
    Dataset,
    /// The consumer of the batches.
    Consumer,
    /// The start: the run was too short to tell.
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
        let idle = self.gpu_idle_share;
        if idle.is_some_and(|idle| idle < FED_IDLE_SHARE) {
            return Some(FeedLimit::Kernel);
        }
        let busy = self.link_busy_share?;
        if busy.max(self.busy_after_first()) >= FULL_BUSY_SHARE {
            return Some(self.link_or_latency());
        }
        if !self.origin.is_measured() {
            // On a simulated device, only allocation and driver calls take time beside copies.
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

    /// Whether rate or latency dominates the time of copies.
    fn link_or_latency(&self) -> FeedLimit {
        let one_byte_ns = self.link.one_byte_ns.unwrap_or(0);
        match one_byte_ns as f64 >= LATENCY_SHARE * self.copy_ns() as f64 {
            true => FeedLimit::Latency,
            false => FeedLimit::Link,
        }
    }

    /// The limit if no known stage explains the time.
    fn start_or_batches(&self) -> FeedLimit {
        match self.done.batches <= STARTING_BATCHES {
            true => FeedLimit::Start,
            false => FeedLimit::Batches,
        }
    }

    /// Share of the time before the first batch.
    fn start_share(&self) -> f64 {
        let first_ns = self.done.first_batch_ns.unwrap_or(0) as f64;
        first_ns / self.done.elapsed_ns.unwrap_or(0).max(1) as f64
    }

    /// Busy share of the link after the first batch.
    fn busy_after_first(&self) -> f64 {
        let first_ns = self.done.first_batch_ns.unwrap_or(0);
        let since_ns = self.done.elapsed_ns.unwrap_or(0).saturating_sub(first_ns);
        let copies_ns = self.link.copy_ns - self.copy_ns();
        (copies_ns as f64 / since_ns.max(1) as f64).min(1.0)
    }

    fn copy_ns(&self) -> u64 {
        self.link.copy_ns / self.done.batches.max(1)
    }

    /// What limits and what would help, as sentences; empty if nothing was fed.
    #[must_use]
    pub fn advice(&self) -> Vec<String> {
        let Some(limit) = self.limit else {
            return Vec::new();
        };
        let busy = percent(self.link_busy_share.unwrap_or(0.0));
        let (limit, help) = match limit {
            FeedLimit::Kernel => (
                "The GPU's own work is the limit: batches arrive as fast as it takes them."
                    .to_owned(),
                "A faster feed would gain nothing.",
            ),
            FeedLimit::Link => {
                let rate = self.link_gb_per_s.map(byte_rate);
                let rate = rate.map_or_else(String::new, |rate| format!(", at {rate}"));
                (
                    format!("The link is the limit: it was busy {busy} of the time{rate}."),
                    self.fewer_bytes(),
                )
            }
            FeedLimit::Latency => (
                format!(
                    "The latency of copies is the limit, not the rate of the link: a copy of {} takes {}, one \
                     of 1 byte {}.",
                    short_size(self.link.copy_bytes / self.done.batches.max(1)),
                    duration(self.copy_ns()),
                    duration(self.link.one_byte_ns.unwrap_or(0))
                ),
                "A larger --batch means fewer and larger copies.",
            ),
            FeedLimit::Batches => (
                format!(
                    "The fixed cost of a batch is the limit: {} per batch, of which the copy takes {}.",
                    duration(self.done.elapsed_ns.unwrap_or(0) / self.done.batches.max(1)),
                    duration(self.copy_ns())
                ),
                "A larger --batch means fewer batches.",
            ),
            FeedLimit::Copies => (
                format!(
                    "Waiting for copies is the limit, although the link was busy only {busy} of the time."
                ),
                "A larger --batch means fewer and larger copies; in a longer run (--time) the start matters less.",
            ),
            FeedLimit::Dataset => (
                format!("Reading samples is the limit; the link was busy only {busy} of the time."),
                "More --workers help while there are idle CPUs; beyond that, use a faster source: samples that need \
                 less decoding, or files on a faster disk or in memory.",
            ),
            FeedLimit::Start => (
                "Starting took most of the time: the run was too short to find the limit."
                    .to_owned(),
                "Feed more: raise --epochs or --time, or use a larger source.",
            ),
            FeedLimit::Consumer => (
                "The consumer is the limit: threads waited for it to take batches.".to_owned(),
                "A larger --batch means fewer batches to take; a larger --prefetch evens out slow ones.",
            ),
        };
        vec![limit, help.to_owned()]
    }

    fn fewer_bytes(&self) -> &'static str {
        let largest = self.job.fields.iter().max_by_key(|field| field.bytes);
        let bytes_alone = largest.is_none_or(|field| {
            let dtype = field.dtype.to_ascii_lowercase();
            ["u8", "i8", "bool"].contains(&dtype.as_str())
        });
        if bytes_alone {
            return "Only fewer bytes per sample would help: use smaller samples.";
        }
        "Only fewer bytes per sample would help: use smaller elements, such as u8 with --normalize, which \
         converts them on the device."
    }
}

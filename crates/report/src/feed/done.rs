//! What came to the device.

use serde::Serialize;

use crate::format::{amount, byte_rate};

/// What came to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct FeedDone {
    /// Epochs that were run to their end.
    pub epochs: u64,
    /// Batches.
    pub batches: u64,
    /// Samples in them, padding included.
    pub samples: u64,
    /// Samples that could not be had and were left out.
    pub skipped: u64,
    /// Bytes of samples as the dataset has them, in the first batches; see `sample_batches`.
    pub sample_bytes: u64,
    /// How many batches these are. Less than all where samples differ in length and some batches were
    /// copied ahead and not taken.
    pub sample_batches: u64,
    /// Bytes that were copied to the device: samples, where those of differing length begin, and what
    /// lies between fields.
    pub moved_bytes: u64,
    /// From the start until all was done, by the clock of the device's machine: simulated for a
    /// simulated device. `None` where that clock says nothing.
    pub elapsed_ns: Option<u64>,
    /// From the start until the first batch was handed out, by the same clock.
    pub first_batch_ns: Option<u64>,
}

impl FeedDone {
    /// Bytes, by what they are where these are not all alike.
    pub(super) fn amounts(&self) -> String {
        let (samples, moved) = (amount(self.sample_bytes), amount(self.moved_bytes));
        if self.sample_bytes == self.moved_bytes {
            return samples;
        }
        let of = match self.sample_batches < self.batches {
            true => format!("of samples in the {} that were taken", self.sample_batches),
            false => "of samples".to_owned(),
        };
        format!("{samples} {of}, {moved} moved with their lengths and padding")
    }

    /// The same for rates of both, where there is one.
    pub(super) fn rates(&self, samples: Option<f64>, moved: Option<f64>) -> String {
        let words = |rate: Option<f64>, what: &str| {
            let rate = rate.map(byte_rate);
            rate.map_or(String::new(), |rate| format!(", {rate}{what}"))
        };
        match self.sample_bytes == self.moved_bytes {
            true => words(samples, ""),
            false => words(samples, " of samples") + &words(moved, " moved"),
        }
    }
}

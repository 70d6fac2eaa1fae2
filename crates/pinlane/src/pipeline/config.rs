//! How a pipeline is set up.

use pinlane_model::pipeline::{PipelineOrder as PlannedOrder, Shape};

use crate::{Error, Result};

/// In which order the stages of different chunks are submitted, and on which streams.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Order {
    /// All stages of one chunk, then of the next, on `streams` streams in turn.
    DepthFirst,
    /// One stage of as many chunks as there are streams, then the next stage of them.
    BreadthFirst,
    /// One stream a stage, joined by events.
    StageStreams,
}

/// Size and number of chunks, and their order. The defaults are good on current hardware; the
/// model's planner finds the best for a job.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PipelineConfig {
    /// Bytes of a chunk, of the widest input or output. The last chunk may be smaller.
    pub chunk_bytes: usize,
    /// Streams that chunks take in turn; without meaning for [`Order::StageStreams`], which has
    /// three.
    pub streams: usize,
    /// In which order stages are submitted.
    pub order: Order,
    /// Device buffers of each input and output, and pinned ones where the host fills or empties
    /// them: so many chunks can be under way. At least `streams` for [`Order::BreadthFirst`].
    pub slots: usize,
    /// Note when each stage of each chunk was on the device, in [`Flow::spans`](super::Flow).
    pub record: bool,
}

/// More streams than these are no use to anybody, and drivers slow down.
const STREAMS_AT_MOST: usize = 128;

impl Default for PipelineConfig {
    fn default() -> Self {
        Self {
            chunk_bytes: 16 << 20,
            streams: 3,
            order: Order::StageStreams,
            slots: 4,
            record: false,
        }
    }
}

impl PipelineConfig {
    /// What the model's planner chose: [`best`](pinlane_model::search::best) gives a shape for a
    /// job and a profile. Chunks are rounded up to whole items of so many bytes, of the widest input
    /// or output: rounded down, the last few would be a chunk of their own.
    ///
    /// # Errors
    /// For chunks that the address space does not hold.
    pub fn planned(shape: &Shape, item_bytes: usize) -> Result<Self> {
        let whole_items = |bytes: usize| bytes.checked_next_multiple_of(item_bytes.max(1));
        let chunk_bytes = usize::try_from(shape.chunk_bytes).ok();
        let chunk_bytes = chunk_bytes
            .and_then(whole_items)
            .ok_or(Error::InvalidConfig {
                field: "chunk_bytes",
                reason: "no more than the address space holds",
            })?;
        Ok(Self {
            chunk_bytes,
            streams: shape.streams as usize,
            order: match shape.order {
                PlannedOrder::DepthFirst => Order::DepthFirst,
                PlannedOrder::BreadthFirst => Order::BreadthFirst,
                PlannedOrder::StageStreams => Order::StageStreams,
            },
            slots: shape.ring_slots as usize,
            ..Self::default()
        })
    }

    pub(super) fn check(&self) -> Result<()> {
        let wrong = |field, reason| Err(Error::InvalidConfig { field, reason });
        if self.chunk_bytes == 0 {
            return wrong("chunk_bytes", "at least 1");
        }
        if !(1..=STREAMS_AT_MOST).contains(&self.streams) {
            return wrong("streams", "from 1 to 128");
        }
        if self.slots == 0 {
            return wrong("slots", "at least 1");
        }
        if self.order == Order::BreadthFirst && self.slots < self.streams {
            return wrong(
                "slots",
                "at least as many as streams for breadth-first order",
            );
        }
        Ok(())
    }

    pub(super) fn stream_count(&self) -> usize {
        match self.order {
            Order::StageStreams => 3,
            Order::DepthFirst | Order::BreadthFirst => self.streams,
        }
    }

    /// Chunks whose stages are submitted side by side.
    pub(super) fn group(&self) -> usize {
        match self.order {
            Order::BreadthFirst => self.streams,
            Order::DepthFirst | Order::StageStreams => 1,
        }
    }

    /// Which streams load, work on and store a chunk.
    pub(super) fn streams_of(&self, chunk: u64) -> [usize; 3] {
        match self.order {
            Order::StageStreams => [0, 1, 2],
            Order::DepthFirst | Order::BreadthFirst => [(chunk % self.streams as u64) as usize; 3],
        }
    }
}

//! Configuration of a pipeline.

pub use pinlane_model::pipeline::PipelineOrder;
use pinlane_model::pipeline::Shape;

use pinlane_core::{Error, Result};

/// Size and number of chunks, and their order. The defaults suit current hardware; the planner
/// ([`planned`](Self::planned)) finds the best for a job.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PipelineConfig {
    /// Bytes of a chunk of the widest input or output. The last chunk may be smaller.
    pub chunk_bytes: usize,
    /// Streams that chunks use in turn. [`PipelineOrder::StageStreams`] always has three.
    pub streams: usize,
    /// The order in which stages are submitted.
    pub order: PipelineOrder,
    /// Chunks in flight: each input and output has this many device buffers, and as many pinned buffers if
    /// the host fills or empties them. At least `streams` for [`PipelineOrder::BreadthFirst`].
    pub slots: usize,
    /// Records when each stage of each chunk ran on the device, in [`RunSummary::spans`](super::RunSummary).
    pub record: bool,
}

/// Drivers slow down beyond this.
const STREAMS_AT_MOST: usize = 128;

impl Default for PipelineConfig {
    fn default() -> Self {
        Self {
            chunk_bytes: 16 << 20,
            streams: 3,
            order: PipelineOrder::StageStreams,
            slots: 4,
            record: false,
        }
    }
}

macro_rules! setters {
    ($($field:ident: $type:ty),*) => {
        impl PipelineConfig {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](Self#structfield.", stringify!($field), ").")]
                #[must_use]
                pub fn $field(mut self, $field: $type) -> Self {
                    self.$field = $field;
                    self
                }
            )*
        }
    };
}

setters!(chunk_bytes: usize, streams: usize, order: PipelineOrder, slots: usize, record: bool);

impl PipelineConfig {
    /// The configuration that the planner chose: [`best`](pinlane_model::planner::best) returns a shape for
    /// a job and a profile. Chunks are rounded up to whole items, `item_bytes` each in the widest input or
    /// output; rounding down would leave a tiny last chunk.
    ///
    /// # Errors
    /// If a chunk does not fit the address space.
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
            order: shape.order,
            slots: shape.ring_slots as usize,
            ..Self::default()
        })
    }

    pub(super) fn check(&self) -> Result<()> {
        let wrong = |field, reason| Err(Error::InvalidConfig { field, reason });
        match self {
            Self { chunk_bytes: 0, .. } => wrong("chunk_bytes", "at least 1"),
            _ if !(1..=STREAMS_AT_MOST).contains(&self.streams) => {
                wrong("streams", "from 1 to 128")
            }
            Self { slots: 0, .. } => wrong("slots", "at least 1"),
            _ if self.slots < self.group() => wrong(
                "slots",
                "at least as many as streams for breadth-first order",
            ),
            _ => Ok(()),
        }
    }

    pub(super) fn stream_count(&self) -> usize {
        match self.order {
            PipelineOrder::StageStreams => 3,
            PipelineOrder::DepthFirst | PipelineOrder::BreadthFirst => self.streams,
        }
    }

    /// Chunks whose stages are submitted together.
    pub(super) fn group(&self) -> usize {
        match self.order {
            PipelineOrder::BreadthFirst => self.streams,
            PipelineOrder::DepthFirst | PipelineOrder::StageStreams => 1,
        }
    }

    /// The streams that upload, compute and download a chunk.
    pub(super) fn streams_of(&self, chunk: u64) -> [usize; 3] {
        match self.order {
            PipelineOrder::StageStreams => [0, 1, 2],
            PipelineOrder::DepthFirst | PipelineOrder::BreadthFirst => {
                [(chunk % self.streams as u64) as usize; 3]
            }
        }
    }
}

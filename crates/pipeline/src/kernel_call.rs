//! What a run does with each chunk, and its summary.

use pinlane_core::{DeviceSlice, DeviceSliceMut, Result, Stream};

use super::stage_recorder::StageSpan;

/// The result of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RunSummary {
    /// Number of chunks.
    pub chunks: u64,
    /// Items of all chunks together.
    pub items: u64,
    /// When each stage of each chunk ran on the device, in the order in which they ended. Empty unless
    /// [`record`](super::PipelineConfig::record) is set.
    pub spans: Vec<StageSpan>,
}

/// The chunk that a kernel is launched for, and the stream to launch it on.
#[derive(Debug)]
pub struct Stage<'a> {
    pub(super) stream: &'a Stream,
    pub(super) chunk: Chunk,
}

/// Consecutive items.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) number: u64,
    pub(super) first_item: usize,
    pub(super) items: usize,
}

impl Stage<'_> {
    /// The stream to submit to.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        self.stream
    }

    /// The chunk, from 0.
    #[must_use]
    pub fn chunk(&self) -> u64 {
        self.chunk.number
    }

    /// Items before this chunk.
    #[must_use]
    pub fn first_item(&self) -> usize {
        self.chunk.first_item
    }

    /// Items of this chunk.
    #[must_use]
    pub fn items(&self) -> usize {
        self.chunk.items
    }
}

pub(super) type KernelFn<'k> =
    &'k mut dyn FnMut(&Stage<'_>, &[DeviceSlice<'_, u8>], DeviceSliceMut<'_, u8>) -> Result<()>;
pub(super) type InPlaceFn<'k> = &'k mut dyn FnMut(&Stage<'_>, DeviceSliceMut<'_, u8>) -> Result<()>;

/// The user's function that launches the kernel.
pub(super) enum KernelCall<'k> {
    OutOfPlace(KernelFn<'k>),
    InPlace(InPlaceFn<'k>),
}

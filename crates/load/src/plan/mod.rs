//! Plans a load: where each tensor goes on the device, and which pieces of the files are read. Pieces are
//! computed on demand, so memory grows with the number of tensors, not with their size.

mod pieces;
mod rotate;

pub(crate) use pieces::PieceCursor;
pub use pieces::{Piece, PieceCopy, PiecePart, Pieces};

use crate::setters::setters;
use crate::{Dtype, LoadError, LoadErrorKind, Shard, TensorInfo};
use pieces::TensorSource;

/// Sizes of a plan. The defaults suit current GPUs and disks.
///
/// ```
/// use pinlane::load::PlanOptions;
///
/// let options = PlanOptions::default().piece_bytes(16 << 20);
/// assert_eq!(options.align_bytes, 256);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PlanOptions {
    /// Alignment of tensors on the device: a power of two.
    pub align_bytes: u64,
    /// Largest device allocation. Only a single larger tensor exceeds it.
    pub allocation_bytes: u64,
    /// Largest piece, that is, the size of a pinned slot. A multiple of `read_align_bytes`.
    pub piece_bytes: u64,
    /// Pieces are cut at multiples of this in the file: a power of two. A piece that is widened to
    /// these boundaries, for direct I/O, still fits its slot.
    pub read_align_bytes: u64,
    /// A piece begins no further tensor once its tensors take this many bytes on the device, as a load whose
    /// device memory has a limit needs it. Bytes that tensors share may then be read twice.
    pub window_bytes: u64,
    /// The place where the pieces begin: rank `r` of `w` begins at `r / w` of the bytes and wraps. So ranks that load
    /// the same files read different parts of them at any time. With `window_bytes`, it begins with the nearest
    /// tensor, since one that is read at the beginning and at the end would take a part of the window for good.
    pub local_rank: Shard,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            align_bytes: 256,
            allocation_bytes: 1 << 30,
            piece_bytes: 8 << 20,
            read_align_bytes: 4096,
            window_bytes: u64::MAX,
            local_rank: Shard::whole(),
        }
    }
}

impl PlanOptions {
    setters! {
        align_bytes: u64, allocation_bytes: u64, piece_bytes: u64, read_align_bytes: u64, window_bytes: u64,
        local_rank: Shard
    }

    /// Checks the sizes, for converted elements of at most `element_bytes`.
    fn check(&self, element_bytes: u64) -> Result<(), LoadErrorKind> {
        let (field, reason) = if !self.align_bytes.is_power_of_two() {
            ("align_bytes", "must be a power of two")
        } else if self.allocation_bytes == 0 {
            ("allocation_bytes", "must not be zero")
        } else if self.window_bytes == 0 {
            ("window_bytes", "must not be zero")
        } else if !self.read_align_bytes.is_power_of_two() {
            ("read_align_bytes", "must be a power of two")
        } else if self.piece_bytes == 0 || !self.piece_bytes.is_multiple_of(self.read_align_bytes) {
            let reason = "must be a multiple of read_align_bytes, not zero";
            ("piece_bytes", reason)
        } else if self.piece_bytes - (self.read_align_bytes - 1) < element_bytes {
            // A converted element is never split.
            let reason = "must hold an element that starts at the last byte before a boundary";
            ("piece_bytes", reason)
        } else {
            return Ok(());
        };
        Err(LoadErrorKind::InvalidConfig { field, reason })
    }
}

/// Where tensors go on the device, and which pieces of the files are read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    options: PlanOptions,
    allocations: Vec<u64>,
    placements: Vec<Placement>,
    /// The ranges to read, in this order.
    sources: Vec<TensorSource>,
}

/// Location of a tensor on the device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[non_exhaustive]
pub struct Placement {
    /// Number of the allocation. Meaningless for an empty tensor.
    pub allocation: usize,
    /// Offset in the allocation.
    pub offset_bytes: u64,
    /// Size on the device.
    pub len_bytes: u64,
}

impl Plan {
    /// Plans the load of these tensors. They may repeat or overlap: each gets its own memory on the
    /// device, and shared bytes are read once.
    ///
    /// # Errors
    /// [`LoadErrorKind::InvalidConfig`] for invalid sizes, and [`LoadErrorKind::TotalOverflow`].
    pub fn new(tensors: &[TensorInfo], options: PlanOptions) -> Result<Self, LoadError> {
        Self::converting(tensors, None, options)
    }

    /// Plans a load that converts floating-point tensors to another type. Others stay as they are.
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`LoadErrorKind::NotAFloat`] if `to` is not a type to convert to.
    pub fn converting(
        tensors: &[TensorInfo],
        to: Option<Dtype>,
        options: PlanOptions,
    ) -> Result<Self, LoadError> {
        let sources = pieces::sources(tensors, to);
        let elements = sources.iter().map(|source| source.element_bytes.0);
        options.check(elements.max().unwrap_or(1))?;
        if let Some(to) = to.filter(|to| to.float_kind().is_none()) {
            return Err(LoadErrorKind::NotAFloat { to }.into());
        }
        let sources = rotate::begin_at(sources, &options);
        let mut plan = Self {
            options,
            allocations: Vec::new(),
            placements: vec![Placement::default(); tensors.len()],
            sources,
        };
        plan.place().ok_or(LoadErrorKind::TotalOverflow)?;
        Ok(plan)
    }

    /// Places the tensors in the order in which they are read: what is read together is written together.
    /// `None` if the total size overflows.
    fn place(&mut self) -> Option<()> {
        let options = &self.options;
        let mut total_bytes: u64 = 0;
        for source in &self.sources {
            if self.placements[source.tensor].len_bytes > 0 {
                continue; // the head of a tensor in which the plan begins
            }
            let len_bytes = source.device_bytes(source.tensor_bytes)?;
            let place_after = |allocated: &u64| {
                let start = allocated.checked_next_multiple_of(options.align_bytes)?;
                let end = start.checked_add(len_bytes)?;
                (end <= options.allocation_bytes).then_some((start, end))
            };
            let offset_bytes = if let Some(last) = self.allocations.last_mut()
                && let Some((start, end)) = place_after(last)
            {
                *last = end;
                start
            } else {
                self.allocations.push(len_bytes);
                0
            };
            total_bytes = total_bytes.checked_add(len_bytes)?;
            total_bytes = total_bytes.checked_next_multiple_of(options.align_bytes)?;
            self.placements[source.tensor] = Placement {
                allocation: self.allocations.len() - 1,
                offset_bytes,
                len_bytes,
            };
        }
        Some(())
    }

    /// Sizes of the device allocations.
    pub fn allocations(&self) -> &[u64] {
        &self.allocations
    }

    /// Location of each tensor, in the order given.
    pub fn placements(&self) -> &[Placement] {
        &self.placements
    }

    /// The pieces to read, by file and offset, from the place of [the rank](PlanOptions::local_rank) on. No unneeded
    /// byte is read, and no byte twice, unless [`window_bytes`](PlanOptions::window_bytes) makes it necessary.
    pub fn pieces(&self) -> Pieces<'_> {
        let cursor = PieceCursor::default();
        Pieces { plan: self, cursor }
    }
}

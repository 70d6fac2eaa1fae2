//! Batches of copies.

use pinlane_driver::CopyOp;

use crate::copy::any_place;
use crate::error::{Code, INVALID_VALUE, Outcome};
use crate::exports::exports_by_default_stream;
use crate::ffi::{In, Out};
use crate::stream::StreamRef;

/// `CUmemcpyAttributes`, as C lays it out.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attributes {
    source_access_order: u32,
    source_hint: [u32; 2],
    target_hint: [u32; 2],
    flags: u32,
}

/// Access orders: in stream order, during the call, any.
const ACCESS_ORDERS: std::ops::RangeInclusive<u32> = 1..=3;

/// The arrays of a batch.
struct Lists {
    targets: In<u64>,
    sources: In<u64>,
    sizes: In<usize>,
    count: usize,
    attributes: In<Attributes>,
    attribute_starts: In<usize>,
    attribute_count: usize,
}

/// Why a batch was refused: the code, and the index of the copy that caused it.
type Refusal = (Code, usize);

impl Lists {
    /// Each copy belongs to the last attribute that starts at or before it.
    fn check_attributes(&self) -> Outcome<()> {
        let starts = self.attribute_starts.list(self.attribute_count)?;
        let in_order = starts.is_sorted_by(|a, b| a < b);
        if starts.first() != Some(&0) || !in_order || self.attribute_count > self.count {
            return Err(INVALID_VALUE);
        }
        let attributes = self.attributes.list(self.attribute_count)?;
        let known = |one: &Attributes| ACCESS_ORDERS.contains(&one.source_access_order);
        if attributes.iter().all(known) {
            Ok(())
        } else {
            Err(INVALID_VALUE)
        }
    }

    fn copy(&self, index: usize) -> Outcome<CopyOp> {
        let bytes = self.sizes.read_at(index)?;
        if bytes == 0 {
            return Err(INVALID_VALUE);
        }
        Ok(CopyOp {
            target: any_place(self.targets.read_at(index)?)?,
            source: any_place(self.sources.read_at(index)?)?,
            bytes,
        })
    }

    fn submit(&self, stream: &StreamRef) -> Result<(), Refusal> {
        let whole = |code: Code| (code, usize::MAX);
        if stream.is_legacy || self.count == 0 {
            return Err(whole(INVALID_VALUE));
        }
        self.check_attributes().map_err(whole)?;
        let copies = (0..self.count)
            .map(|index| self.copy(index).map_err(|code| (code, index)))
            .collect::<Result<Vec<_>, _>>()?;
        // SAFETY: the program guarantees that its host memory is valid until the copies are done, and
        // that they do not conflict. The simulator checks device addresses and pinned memory.
        unsafe { stream.driver().copy_batch(&copies, stream.handle) }
            .map_err(|error| whole(error.into()))
    }
}

exports_by_default_stream! {
    /// Submits a batch of copies; stores the index of the one that was refused.
    fn cuMemcpyBatchAsync, cuMemcpyBatchAsync_ptsz(
        targets: In<u64>, sources: In<u64>, sizes: In<usize>, count: usize,
        attributes: In<Attributes>, attribute_starts: In<usize>, attribute_count: usize,
        failed: Out<usize>, stream: usize,
    ) |mode| {
        let stream = StreamRef::find(stream, mode)?;
        let lists = Lists {
            targets, sources, sizes, count, attributes, attribute_starts, attribute_count,
        };
        lists.submit(&stream).map_err(|(code, index)| {
            failed.set_optional(index);
            code
        })
    }

    /// Submits a batch of copies.
    fn cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync_v2_ptsz(
        targets: In<u64>, sources: In<u64>, sizes: In<usize>, count: usize,
        attributes: In<Attributes>, attribute_starts: In<usize>, attribute_count: usize,
        stream: usize,
    ) |mode| {
        let stream = StreamRef::find(stream, mode)?;
        let lists = Lists {
            targets, sources, sizes, count, attributes, attribute_starts, attribute_count,
        };
        lists.submit(&stream).map_err(|(code, _)| code)
    }
}

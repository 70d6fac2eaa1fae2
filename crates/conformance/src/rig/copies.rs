//! Copies, with every range checked.

use pinlane_driver::{Copy2d, CopyOp, Result, StreamHandle};

use super::{Rig, Span};
use crate::Outcome;

/// One end of a copy of rows: the bytes from the first row to the end of the last, and the distance
/// between rows.
type Rows<'m> = (Span<'m>, usize);

impl Rig {
    /// Copies `source` to `target`, which has the same length, and waits.
    pub(crate) fn copy(&self, target: Span<'_>, source: Span<'_>) -> Result<()> {
        // SAFETY: `copy_op` takes spans of live memory of equal length, and cases copy between
        // different buffers.
        unsafe { (**self).copy(copy_op(target, source)) }
    }

    /// Copies `source` to `target`, which has the same length, in stream order.
    pub(crate) fn copy_async(
        &self,
        target: Span<'_>,
        source: Span<'_>,
        stream: StreamHandle,
    ) -> Result<()> {
        // SAFETY: as in `copy`. The rig frees memory only after all work is done, and cases wait
        // before they access it.
        unsafe { (**self).copy_async(copy_op(target, source), stream) }
    }

    /// Copies data to the device and back in stream order, and waits once.
    pub(crate) fn round_trip(&self, data: &[u8], stream: StreamHandle) -> Outcome {
        let (source, target) = (self.pinned_from(data)?, self.pinned(data.len())?);
        let device = self.device(data.len())?;
        self.copy_async(device.all(), source.all(), stream)?;
        self.copy_async(target.all(), device.all(), stream)?;
        self.stream_synchronize(stream)?;
        self.check(target.all(), data, "round trip")
    }

    /// Submits a batch of copies.
    pub(crate) fn copy_batch(
        &self,
        copies: &[(Span<'_>, Span<'_>)],
        stream: StreamHandle,
    ) -> Result<()> {
        let copies: Vec<_> = copies.iter().map(|(t, s)| copy_op(*t, *s)).collect();
        // SAFETY: as in `copy_async`; the targets of a case's batch are disjoint.
        unsafe { (**self).copy_batch(&copies, stream) }
    }

    /// Copies rows from the second end to the first: in stream order, or synchronously without a
    /// stream.
    pub(crate) fn copy_rows(
        &self,
        [target, source]: [Rows<'_>; 2],
        row_bytes: usize,
        rows: usize,
        stream: Option<StreamHandle>,
    ) -> Result<()> {
        for (span, pitch_bytes) in [target, source] {
            assert!(row_bytes <= pitch_bytes);
            assert!((rows - 1) * pitch_bytes + row_bytes <= span.bytes);
        }
        let copy = Copy2d {
            target: target.0.place,
            target_pitch_bytes: target.1,
            source: source.0.place,
            source_pitch_bytes: source.1,
            row_bytes,
            rows,
        };
        // SAFETY: all rows are inside spans of live memory; otherwise as in `copy_async`.
        unsafe {
            match stream {
                Some(stream) => self.copy_2d_async(copy, stream),
                None => self.copy_2d(copy),
            }
        }
    }

    /// Sets device bytes.
    pub(crate) fn memset(&self, target: Span<'_>, value: u8, stream: StreamHandle) -> Result<()> {
        // SAFETY: a span of live device memory; cases order their work on it.
        unsafe { self.memset_async(target.device(), value, target.bytes, stream) }
    }
}

fn copy_op(target: Span<'_>, source: Span<'_>) -> CopyOp {
    assert_eq!(target.bytes, source.bytes, "the lengths differ");
    CopyOp {
        target: target.place,
        source: source.place,
        bytes: source.bytes,
    }
}

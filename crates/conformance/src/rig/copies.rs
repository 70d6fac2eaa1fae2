//! Copies, with every range checked.

use pinlane_driver::{Copy2d, CopyOp, Result, StreamHandle};

use super::{Rig, Span};

/// One end of a copy of rows.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'m> {
    /// The bytes from the first row to the end of the last.
    pub(crate) span: Span<'m>,
    /// Distance between rows.
    pub(crate) pitch_bytes: usize,
}

impl Rig {
    /// Copies `source` to `target`, which has the same length, and waits.
    pub(crate) fn copy(&self, target: Span<'_>, source: Span<'_>) -> Result<()> {
        // SAFETY: `copy_op` takes spans of live memory of equal length, and cases copy between
        // different buffers.
        unsafe { self.driver().copy(copy_op(target, source)) }
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
        unsafe { self.driver().copy_async(copy_op(target, source), stream) }
    }

    /// Submits a batch of copies.
    pub(crate) fn copy_batch(
        &self,
        copies: &[(Span<'_>, Span<'_>)],
        stream: StreamHandle,
    ) -> Result<()> {
        let copies: Vec<_> = copies.iter().map(|(t, s)| copy_op(*t, *s)).collect();
        // SAFETY: as in `copy_async`; the targets of a case's batch are disjoint.
        unsafe { self.driver().copy_batch(&copies, stream) }
    }

    /// Copies rows in stream order, or synchronously without a stream.
    pub(crate) fn copy_rows(
        &self,
        target: Rows<'_>,
        source: Rows<'_>,
        row_bytes: usize,
        rows: usize,
        stream: Option<StreamHandle>,
    ) -> Result<()> {
        for end in [&target, &source] {
            assert!(row_bytes <= end.pitch_bytes);
            assert!((rows - 1) * end.pitch_bytes + row_bytes <= end.span.bytes);
        }
        let copy = Copy2d {
            target: target.span.place,
            target_pitch_bytes: target.pitch_bytes,
            source: source.span.place,
            source_pitch_bytes: source.pitch_bytes,
            row_bytes,
            rows,
        };
        // SAFETY: all rows are inside spans of live memory; otherwise as in `copy_async`.
        unsafe {
            match stream {
                Some(stream) => self.driver().copy_2d_async(copy, stream),
                None => self.driver().copy_2d(copy),
            }
        }
    }

    /// Sets device bytes.
    pub(crate) fn memset(&self, target: Span<'_>, value: u8, stream: StreamHandle) -> Result<()> {
        // SAFETY: a span of live device memory; cases order their work on it.
        unsafe {
            self.driver()
                .memset_async(target.device(), value, target.bytes, stream)
        }
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

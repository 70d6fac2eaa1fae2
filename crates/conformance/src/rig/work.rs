//! Work for the device, with every range checked.

use pinlane_driver::{
    Copy2d, CopyOp, FunctionHandle, KernelArg, LaunchShape, Result, StreamHandle,
};

use super::{Rig, Span};

/// One end of a copy of rows.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'m> {
    /// From the first row to the end of the last.
    pub(crate) span: Span<'m>,
    /// From one row to the next.
    pub(crate) pitch_bytes: usize,
}

/// The built-in kernels, loaded.
#[derive(Clone, Copy)]
pub(crate) struct Kernels {
    pub(crate) add_u32: FunctionHandle,
    pub(crate) saxpy_f32: FunctionHandle,
    pub(crate) copy_u8: FunctionHandle,
    pub(crate) spin: FunctionHandle,
}

impl Rig {
    /// Copy all of `source` to `target`, of the same length, and wait.
    pub(crate) fn copy(&self, target: Span<'_>, source: Span<'_>) -> Result<()> {
        // SAFETY: `copy_op` takes spans of live memory of equal length, and cases copy between
        // different buffers.
        unsafe { self.driver().copy(copy_op(target, source)) }
    }

    /// Copy all of `source` to `target`, of the same length, in stream order.
    pub(crate) fn copy_async(
        &self,
        target: Span<'_>,
        source: Span<'_>,
        stream: StreamHandle,
    ) -> Result<()> {
        // SAFETY: as in `copy`; the rig frees memory only after all work is done, and cases wait
        // before they touch it.
        unsafe { self.driver().copy_async(copy_op(target, source), stream) }
    }

    /// Many copies as one.
    pub(crate) fn copy_batch(
        &self,
        copies: &[(Span<'_>, Span<'_>)],
        stream: StreamHandle,
    ) -> Result<()> {
        let copies: Vec<_> = copies.iter().map(|(t, s)| copy_op(*t, *s)).collect();
        // SAFETY: as in `copy_async`; the targets of a case's batch are disjoint.
        unsafe { self.driver().copy_batch(&copies, stream) }
    }

    /// Copy rows: at once and wait, or in stream order.
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
        // SAFETY: all rows lie inside spans of live memory; the rest as in `copy_async`.
        unsafe {
            match stream {
                Some(stream) => self.driver().copy_2d_async(copy, stream),
                None => self.driver().copy_2d(copy),
            }
        }
    }

    /// Set device bytes.
    pub(crate) fn memset(&self, target: Span<'_>, value: u8, stream: StreamHandle) -> Result<()> {
        // SAFETY: a span of live device memory; cases order their work on it.
        unsafe {
            self.driver()
                .memset_async(target.device(), value, target.bytes, stream)
        }
    }

    /// Load the built-in kernels, each run once: a driver may load a kernel at its first launch
    /// and wait for the device then, which must not happen behind a closed gate.
    pub(crate) fn kernels(&self) -> Result<Kernels> {
        let module = self.module(pinlane_kernels::PTX)?;
        let function = |name| self.driver().module_function(module, name);
        let kernels = Kernels {
            add_u32: function("pinlane_add_u32")?,
            saxpy_f32: function("pinlane_saxpy_f32")?,
            copy_u8: function("pinlane_copy_u8")?,
            spin: function("pinlane_spin")?,
        };
        let scratch = self.device(64)?;
        let stream = self.driver().default_stream();
        self.memset(scratch.all(), 0, stream)?;
        self.add_u32(kernels, scratch.all(), 1, stream)?;
        self.saxpy_f32(
            kernels,
            1.0,
            scratch.span(0, 32),
            scratch.span(32, 32),
            stream,
        )?;
        self.copy_u8(kernels, scratch.span(0, 32), scratch.span(32, 32), stream)?;
        self.spin(kernels, 1, stream)?;
        self.driver().synchronize()?;
        Ok(kernels)
    }

    /// Add `value` to every word of `data`.
    pub(crate) fn add_u32(
        &self,
        kernels: Kernels,
        data: Span<'_>,
        value: u32,
        stream: StreamHandle,
    ) -> Result<()> {
        let words = data.bytes / 4;
        let args = [
            KernelArg::U64(words as u64),
            KernelArg::U32(value),
            KernelArg::Ptr(data.device()),
        ];
        self.launch(kernels.add_u32, words, &args, stream)
    }

    /// `y += a * x`, word by word.
    pub(crate) fn saxpy_f32(
        &self,
        kernels: Kernels,
        a: f32,
        x: Span<'_>,
        y: Span<'_>,
        stream: StreamHandle,
    ) -> Result<()> {
        assert_eq!(x.bytes, y.bytes);
        let words = x.bytes / 4;
        let args = [
            KernelArg::U64(words as u64),
            KernelArg::F32(a),
            KernelArg::Ptr(x.device()),
            KernelArg::Ptr(y.device()),
        ];
        self.launch(kernels.saxpy_f32, words, &args, stream)
    }

    /// Copy by a kernel.
    pub(crate) fn copy_u8(
        &self,
        kernels: Kernels,
        source: Span<'_>,
        target: Span<'_>,
        stream: StreamHandle,
    ) -> Result<()> {
        assert_eq!(source.bytes, target.bytes);
        let args = [
            KernelArg::U64(source.bytes as u64),
            KernelArg::Ptr(source.device()),
            KernelArg::Ptr(target.device()),
        ];
        self.launch(kernels.copy_u8, source.bytes, &args, stream)
    }

    /// Keep the device busy.
    pub(crate) fn spin(&self, kernels: Kernels, ns: u64, stream: StreamHandle) -> Result<()> {
        self.launch(kernels.spin, 1, &[KernelArg::U64(ns)], stream)
    }

    fn launch(
        &self,
        function: FunctionHandle,
        items: usize,
        args: &[KernelArg],
        stream: StreamHandle,
    ) -> Result<()> {
        self.launch_shaped(function, LaunchShape::for_items(items), args, stream)
    }

    /// Launch with a shape of the case's choice.
    pub(crate) fn launch_shaped(
        &self,
        function: FunctionHandle,
        shape: LaunchShape,
        args: &[KernelArg],
        stream: StreamHandle,
    ) -> Result<()> {
        // SAFETY: the arguments were made for this kernel, from spans of live memory; the rig
        // frees memory only after all work is done, and cases order their work on it.
        unsafe { self.driver().launch(function, shape, args, stream) }
    }
}

fn copy_op(target: Span<'_>, source: Span<'_>) -> CopyOp {
    assert_eq!(target.bytes, source.bytes, "both ends are equally long");
    CopyOp {
        target: target.place,
        source: source.place,
        bytes: source.bytes,
    }
}

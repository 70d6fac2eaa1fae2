//! Kernel launches, with every range checked.

use pinlane_driver::{FunctionHandle, KernelArg, LaunchShape, Result, StreamHandle};
use pinlane_kernels::{dot_partials, dot_sum_shape};

use super::{Rig, Span};

/// Loaded built-in kernels.
#[derive(Clone, Copy)]
pub(crate) struct Kernels {
    pub(crate) add_u32: FunctionHandle,
    pub(crate) saxpy_f32: FunctionHandle,
    pub(crate) copy_u8: FunctionHandle,
    pub(crate) spin: FunctionHandle,
}

/// The layout of channels.
#[derive(Clone, Copy)]
pub(crate) struct Planes<'m> {
    /// Consecutive elements of a channel.
    pub(crate) inner: usize,
    /// Scale and offset of each channel, both `f32`.
    pub(crate) table: Span<'m>,
}

impl Rig {
    /// Loads the built-in kernels and runs each once. A driver may load a kernel at its first launch
    /// and wait for the device, which must not happen behind a closed gate.
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

    /// Adds `value` to every word of `data`.
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

    /// Copies with a kernel.
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

    /// Keeps the device busy.
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

    /// Launches a kernel with this shape.
    pub(crate) fn launch_shaped(
        &self,
        function: FunctionHandle,
        shape: LaunchShape,
        args: &[KernelArg],
        stream: StreamHandle,
    ) -> Result<()> {
        // SAFETY: the arguments match this kernel and are spans of live memory. The rig frees memory
        // only after all work is done, and cases order their work on it.
        unsafe { self.driver().launch(function, shape, args, stream) }
    }

    /// Converts every `f32` of `source` to 16 bits with `function`.
    pub(crate) fn narrow(
        &self,
        function: FunctionHandle,
        source: Span<'_>,
        target: Span<'_>,
        shape: LaunchShape,
        stream: StreamHandle,
    ) -> Result<()> {
        assert_eq!(source.bytes, 2 * target.bytes);
        let args = [
            KernelArg::U64((source.bytes / 4) as u64),
            KernelArg::Ptr(source.device()),
            KernelArg::Ptr(target.device()),
        ];
        self.launch_shaped(function, shape, &args, stream)
    }

    /// Converts every byte of `source` to `f32` with a scale and an offset.
    pub(crate) fn scale_u8(
        &self,
        function: FunctionHandle,
        (scale, offset): (f32, f32),
        source: Span<'_>,
        target: Span<'_>,
        shape: LaunchShape,
        stream: StreamHandle,
    ) -> Result<()> {
        assert_eq!(4 * source.bytes, target.bytes);
        let args = [
            KernelArg::U64(source.bytes as u64),
            KernelArg::F32(scale),
            KernelArg::F32(offset),
            KernelArg::Ptr(source.device()),
            KernelArg::Ptr(target.device()),
        ];
        self.launch_shaped(function, shape, &args, stream)
    }

    /// Normalises every byte of `source` to a number of `item_bytes` bytes.
    pub(crate) fn normalize_u8(
        &self,
        (function, item_bytes): (FunctionHandle, usize),
        planes: Planes<'_>,
        source: Span<'_>,
        target: Span<'_>,
        shape: LaunchShape,
        stream: StreamHandle,
    ) -> Result<()> {
        assert_eq!(item_bytes * source.bytes, target.bytes);
        assert_eq!(planes.table.bytes % 8, 0);
        let args = [
            KernelArg::U64(source.bytes as u64),
            KernelArg::U64(planes.inner as u64),
            KernelArg::U32((planes.table.bytes / 8) as u32),
            KernelArg::Ptr(planes.table.device()),
            KernelArg::Ptr(source.device()),
            KernelArg::Ptr(target.device()),
        ];
        self.launch_shaped(function, shape, &args, stream)
    }

    /// The dot product of two ranges of `f32`, by both kernels. Waits for it.
    pub(crate) fn dot(
        &self,
        [partials, sum]: [FunctionHandle; 2],
        [x, y]: [Span<'_>; 2],
        shape: LaunchShape,
        stream: StreamHandle,
    ) -> Result<f64> {
        assert_eq!(x.bytes, y.bytes);
        let n = x.bytes / 4;
        let between = self.device(8 * dot_partials(n))?;
        let result = self.device(8)?;
        let args = [
            KernelArg::U64(n as u64),
            KernelArg::Ptr(x.device()),
            KernelArg::Ptr(y.device()),
            KernelArg::Ptr(between.base()),
        ];
        self.launch_shaped(partials, shape, &args, stream)?;
        let args = [
            KernelArg::U64(n as u64),
            KernelArg::Ptr(between.base()),
            KernelArg::Ptr(result.base()),
        ];
        self.launch_shaped(sum, dot_sum_shape(), &args, stream)?;
        self.driver().stream_synchronize(stream)?;
        let bytes = self.download(result.all())?;
        self.free_device(between)?;
        self.free_device(result)?;
        Ok(f64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }

    /// Adds the dot product of two ranges of `f32` to one `f32`.
    pub(crate) fn dot_atomic(
        &self,
        function: FunctionHandle,
        [x, y]: [Span<'_>; 2],
        result: Span<'_>,
        stream: StreamHandle,
    ) -> Result<()> {
        assert_eq!((x.bytes, 4), (y.bytes, result.bytes));
        let args = [
            KernelArg::U64((x.bytes / 4) as u64),
            KernelArg::Ptr(x.device()),
            KernelArg::Ptr(y.device()),
            KernelArg::Ptr(result.device()),
        ];
        let shape = LaunchShape::for_items(x.bytes / 4);
        self.launch_shaped(function, shape, &args, stream)
    }
}

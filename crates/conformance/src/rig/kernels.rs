//! Kernel launches, with every range checked.

use std::iter::once;

use pinlane_driver::{FunctionHandle, KernelArg, LaunchShape, Result, StreamHandle};
use pinlane_kernels::{dot_partials, dot_sum_shape};

use super::{Rig, Span};

/// Loaded built-in kernels.
#[derive(Clone, Copy)]
pub(crate) struct Kernels {
    pub(crate) add_u32: FunctionHandle,
    saxpy_f32: FunctionHandle,
    copy_u8: FunctionHandle,
    spin: FunctionHandle,
}

/// A grid of `grid` blocks, each of `block` threads.
pub(crate) const fn blocks(grid: u32, block: u32) -> LaunchShape {
    LaunchShape {
        grid: [grid, 1, 1],
        block: [block, 1, 1],
        shared_bytes: 0,
    }
}

impl Rig {
    /// Loads the built-in kernels and runs each once. A driver may load a kernel at its first launch
    /// and wait for the device, which must not happen behind a closed gate.
    pub(crate) fn kernels(&self) -> Result<Kernels> {
        let module = self.module(pinlane_kernels::PTX)?;
        let function = |name| self.module_function(module, name);
        let kernels = Kernels {
            add_u32: function("pinlane_add_u32")?,
            saxpy_f32: function("pinlane_saxpy_f32")?,
            copy_u8: function("pinlane_copy_u8")?,
            spin: function("pinlane_spin")?,
        };
        let scratch = self.device(64)?;
        let (front, back) = (scratch.span(0, 32), scratch.span(32, 32));
        let stream = self.default_stream();
        self.memset(scratch.all(), 0, stream)?;
        self.add_u32(kernels, scratch.all(), 1, stream)?;
        self.saxpy_f32(kernels, 1.0, front, back, stream)?;
        self.copy_u8(kernels, front, back, stream)?;
        self.spin(kernels, 1, stream)?;
        self.synchronize()?;
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
        let (n, scalars) = (data.bytes / 4, [KernelArg::U32(value)]);
        let shape = LaunchShape::for_items(n);
        self.launch_over(kernels.add_u32, shape, n, &scalars, &[data], stream)
    }

    /// Replaces every word of `data`, `rounds` times.
    pub(crate) fn rounds_u32(
        &self,
        function: FunctionHandle,
        shape: LaunchShape,
        data: Span<'_>,
        rounds: u32,
        stream: StreamHandle,
    ) -> Result<()> {
        let (n, scalars) = (data.bytes / 4, [KernelArg::U32(rounds)]);
        self.launch_over(function, shape, n, &scalars, &[data], stream)
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
        let (n, scalars) = (x.bytes / 4, [KernelArg::F32(a)]);
        let shape = LaunchShape::for_items(n);
        self.launch_over(kernels.saxpy_f32, shape, n, &scalars, &[x, y], stream)
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
        let (n, shape) = (source.bytes, LaunchShape::for_items(source.bytes));
        self.launch_over(kernels.copy_u8, shape, n, &[], &[source, target], stream)
    }

    /// Keeps the device busy.
    pub(crate) fn spin(&self, kernels: Kernels, ns: u64, stream: StreamHandle) -> Result<()> {
        self.launch(kernels.spin, blocks(1, 256), &[KernelArg::U64(ns)], stream)
    }

    /// Launches a kernel that takes a number of elements, then scalars, then addresses.
    fn launch_over(
        &self,
        function: FunctionHandle,
        shape: LaunchShape,
        n: usize,
        scalars: &[KernelArg],
        spans: &[Span<'_>],
        stream: StreamHandle,
    ) -> Result<()> {
        let spans = spans.iter().map(|span| KernelArg::Ptr(span.device()));
        let args = once(KernelArg::U64(n as u64)).chain(scalars.iter().copied());
        let args: Vec<_> = args.chain(spans).collect();
        self.launch(function, shape, &args, stream)
    }

    /// Launches a kernel with this shape.
    pub(crate) fn launch(
        &self,
        function: FunctionHandle,
        shape: LaunchShape,
        args: &[KernelArg],
        stream: StreamHandle,
    ) -> Result<()> {
        // SAFETY: the arguments match this kernel and are spans of live memory. The rig frees memory
        // only after all work is done, and cases order their work on it.
        unsafe { (**self).launch(function, shape, args, stream) }
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
        let n = source.bytes / 4;
        self.launch_over(function, shape, n, &[], &[source, target], stream)
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
        let (n, scalars) = (source.bytes, [scale, offset].map(KernelArg::F32));
        self.launch_over(function, shape, n, &scalars, &[source, target], stream)
    }

    /// Normalises every byte of `source` to a number of `item_bytes` bytes. A channel has `inner`
    /// consecutive elements; `table` has scale and offset of each channel, both `f32`.
    pub(crate) fn normalize_u8(
        &self,
        (function, item_bytes): (FunctionHandle, usize),
        (inner, table): (usize, Span<'_>),
        source: Span<'_>,
        target: Span<'_>,
        shape: LaunchShape,
        stream: StreamHandle,
    ) -> Result<()> {
        assert_eq!(item_bytes * source.bytes, target.bytes);
        assert_eq!(table.bytes % 8, 0);
        let channels = KernelArg::U32((table.bytes / 8) as u32);
        let scalars = [KernelArg::U64(inner as u64), channels];
        let spans = [table, source, target];
        self.launch_over(function, shape, source.bytes, &scalars, &spans, stream)
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
        self.launch_over(partials, shape, n, &[], &[x, y, between.all()], stream)?;
        let spans = [between.all(), result.all()];
        self.launch_over(sum, dot_sum_shape(), n, &[], &spans, stream)?;
        self.stream_synchronize(stream)?;
        let bytes = self.read(result.all())?;
        self.free_memory(between)?;
        self.free_memory(result)?;
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
        let n = x.bytes / 4;
        let shape = LaunchShape::for_items(n);
        self.launch_over(function, shape, n, &[], &[x, y, result], stream)
    }
}

//! The converting kernels, with every range checked.

use pinlane_driver::{FunctionHandle, KernelArg, LaunchShape, Result, StreamHandle};

use super::{Rig, Span};

impl Rig {
    /// Every `f32` of `source` in 16 bits, by `function`.
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

    /// Every byte of `source` as a scaled and moved `f32`, by `function`.
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
}

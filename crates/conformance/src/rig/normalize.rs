//! The normalising kernels, with every range checked.

use pinlane_driver::{FunctionHandle, KernelArg, LaunchShape, Result, StreamHandle};

use super::{Rig, Span};

/// Which element is of which channel: as many in a row as `inner`.
#[derive(Clone, Copy)]
pub(crate) struct Planes<'m> {
    /// Elements in a row of one channel.
    pub(crate) inner: usize,
    /// Scale and offset, both `f32`, of each channel.
    pub(crate) table: Span<'m>,
}

impl Rig {
    /// Every byte of `source` as a number of `item_bytes` bytes, by `function`.
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
}

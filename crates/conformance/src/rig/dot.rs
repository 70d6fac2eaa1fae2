//! The kernels of the dot product, with every range checked.

use pinlane_driver::{FunctionHandle, KernelArg, LaunchShape, Result, StreamHandle};
use pinlane_kernels::{dot_partials, dot_sum_shape};

use super::{Rig, Span};

impl Rig {
    /// The dot product of two ranges of `f32` as one `f64`, by both kernels. Waits for it.
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

//! Built-in kernels that are safe to launch.

use pinlane_kernels::{
    ROUND_TRIPS_ITEMS, SWEEP_BLOCKS, dot_partials, dot_partials_shape, dot_sum_shape,
};

use crate::driver_copy::same_len;
use crate::kernel::{In, Out};
use crate::normalize::{self, NormalizeTarget, Normalizer};
use crate::{Device, DeviceSlice, DeviceSliceMut, Kernel, LaunchShape, Result, Stream};

/// Small kernels that come with Pinlane: PTX for a GPU, Rust for the simulator.
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// # let device = pinlane::Device::sim("pcie3-x16")?;
/// # let stream = device.stream()?;
/// let kernels = pinlane::Builtin::load(&device)?;
/// let mut counters = stream.alloc::<u32>(100)?;
/// stream.fill_bytes(&mut counters, 0)?;
/// kernels.add(&stream, 5, &mut counters)?;
/// # let mut back = [0; 100];
/// # stream.copy_to_host(&counters, &mut back)?;
/// # assert_eq!(back, [5; 100]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Builtin {
    add_u32: Kernel<Update>,
    saxpy_f32: Kernel<(u64, f32, In<f32>, Out<f32>)>,
    churn_u32: Kernel<Update>,
    sweep_u32: Kernel<Update>,
    round_trips_u32: Kernel<Update>,
    /// Blocks of `sweep_u32` that the device runs at once.
    sweep_blocks: usize,
    dot_partials_f32: Kernel<TwoVectors<f64>>,
    dot_sum_f64: Kernel<(u64, In<f64>, Out<f64>)>,
    dot_atomic_f32: Kernel<TwoVectors<f32>>,
    pub(crate) normalize: normalize::Kernels,
    spin: Kernel<(u64,)>,
}

/// Threads of each block of [`LaunchShape::for_items`].
const BLOCK_THREADS: usize = 256;

/// Number of elements, an operand, and what is updated.
type Update = (u64, u32, Out<u32>);

/// Number of elements, two input vectors, and the output.
type TwoVectors<T> = (u64, In<f32>, In<f32>, Out<T>);

impl Builtin {
    /// Loads the kernels onto a device.
    pub fn load(device: &Device) -> Result<Self> {
        let module = device.load_ptx(pinlane_kernels::PTX)?;
        Ok(Self {
            add_u32: module.kernel("pinlane_add_u32")?,
            saxpy_f32: module.kernel("pinlane_saxpy_f32")?,
            churn_u32: module.kernel("pinlane_churn_u32")?,
            sweep_u32: module.kernel("pinlane_sweep_u32")?,
            round_trips_u32: module.kernel("pinlane_round_trips_u32")?,
            sweep_blocks: device.info().multiprocessors as usize * SWEEP_BLOCKS,
            dot_partials_f32: module.kernel("pinlane_dot_partials_f32")?,
            dot_sum_f64: module.kernel("pinlane_dot_sum_f64")?,
            dot_atomic_f32: module.kernel("pinlane_dot_atomic_f32")?,
            normalize: normalize::Kernels::find(&module)?,
            spin: module.kernel("pinlane_spin")?,
        })
    }

    /// `data[i] += value`, wrapping.
    pub fn add<'a>(
        &self,
        stream: &Stream,
        value: u32,
        data: impl Into<DeviceSliceMut<'a, u32>>,
    ) -> Result<()> {
        // SAFETY: it accesses the elements of `data` only.
        unsafe { update(&self.add_u32, stream, value, data.into(), usize::MAX) }
    }

    /// `data[i] = data[i] * 1664525 + 1013904223`, `rounds` times, wrapping. Keeps the arithmetic units of
    /// the whole device busy for as long as needed.
    pub fn churn<'a>(
        &self,
        stream: &Stream,
        rounds: u32,
        data: impl Into<DeviceSliceMut<'a, u32>>,
    ) -> Result<()> {
        // SAFETY: it accesses the elements of `data` only.
        unsafe { update(&self.churn_u32, stream, rounds, data.into(), usize::MAX) }
    }

    /// The result of [`churn`](Self::churn), limited by device memory: every round reads and writes all
    /// elements before the next begins.
    pub fn sweep<'a>(
        &self,
        stream: &Stream,
        rounds: u32,
        data: impl Into<DeviceSliceMut<'a, u32>>,
    ) -> Result<()> {
        let threads = self.sweep_blocks.saturating_mul(BLOCK_THREADS);
        // SAFETY: it accesses the elements of `data` only.
        unsafe { update(&self.sweep_u32, stream, rounds, data.into(), threads) }
    }

    /// The result of [`churn`](Self::churn), limited by latency: every round of an element waits for a round
    /// trip to memory. Each thread has 16 elements, so chunks below some megabytes do not fill a large GPU.
    pub fn round_trips<'a>(
        &self,
        stream: &Stream,
        rounds: u32,
        data: impl Into<DeviceSliceMut<'a, u32>>,
    ) -> Result<()> {
        let data = data.into();
        let threads = data.len().div_ceil(ROUND_TRIPS_ITEMS);
        // SAFETY: it accesses the elements of `data` only.
        unsafe { update(&self.round_trips_u32, stream, rounds, data, threads) }
    }

    /// `y[i] = a * x[i] + y[i]`, rounded once.
    pub fn saxpy<'a, 'b>(
        &self,
        stream: &Stream,
        a: f32,
        x: impl Into<DeviceSlice<'a, f32>>,
        y: impl Into<DeviceSliceMut<'b, f32>>,
    ) -> Result<()> {
        let (x, y) = (x.into(), y.into());
        same_len(x.len(), y.len())?;
        let items = x.len();
        // SAFETY: these are its parameters, and it only accesses the first `items` elements.
        unsafe {
            let values = (items as u64, a, x, y);
            stream.launch(&self.saxpy_f32, LaunchShape::for_items(items), values)
        }
    }

    /// Number of elements [`dot`](Self::dot) needs for its partial sums: at most 1024.
    #[must_use]
    pub const fn dot_partials(items: usize) -> usize {
        dot_partials(items)
    }

    /// `result[0]` = the dot product of `x` and `y`, accumulated in `f64`.
    ///
    /// The order of the additions is fixed, so the result is bit-identical in every run, on every GPU and
    /// on the simulator; each product is exact. Empty vectors give 0. A NaN always has the same bits.
    /// `partials` holds at least [`dot_partials`](Self::dot_partials) elements, whose values are
    /// unspecified before and after; `result` holds one. Other lengths, and vectors of different lengths,
    /// return an [`Error::LengthMismatch`](crate::Error::LengthMismatch).
    ///
    /// ```
    /// # fn main() -> pinlane::Result<()> {
    /// # let device = pinlane::Device::sim("pcie3-x16")?;
    /// # let stream = device.stream()?;
    /// use pinlane::Builtin;
    ///
    /// let kernels = Builtin::load(&device)?;
    /// let (mut x, mut y) = (device.alloc::<f32>(1000)?, device.alloc::<f32>(1000)?);
    /// stream.copy_to_device(&[0.5; 1000], &mut x)?;
    /// stream.copy_to_device(&[3.0; 1000], &mut y)?;
    /// let mut partials = device.alloc::<f64>(Builtin::dot_partials(1000))?;
    /// let mut result = device.alloc::<f64>(1)?;
    /// kernels.dot(&stream, &x, &y, &mut partials, &mut result)?;
    /// assert_eq!(stream.copy_to_vec(&result)?, [1500.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn dot<'a, 'b, 'c, 'd>(
        &self,
        stream: &Stream,
        x: impl Into<DeviceSlice<'a, f32>>,
        y: impl Into<DeviceSlice<'b, f32>>,
        partials: impl Into<DeviceSliceMut<'c, f64>>,
        result: impl Into<DeviceSliceMut<'d, f64>>,
    ) -> Result<()> {
        let (x, y, partials, result) = (x.into(), y.into(), partials.into(), result.into());
        let items = x.len();
        let needed = dot_partials(items);
        same_len(items, y.len())?;
        same_len(needed, partials.len().min(needed))?;
        same_len(1, result.len())?;
        let mut partials = partials.range(..needed);
        if items > 0 {
            let shape = dot_partials_shape(items);
            let values = (items as u64, x, y, partials.reborrow());
            // SAFETY: these are its parameters and its shape; it reads the first `items` elements and
            // writes exactly the `needed` partial sums.
            unsafe { stream.launch(&self.dot_partials_f32, shape, values)? };
        }
        let values = (items as u64, partials.as_read(), result);
        // SAFETY: these are its parameters and its shape; it reads those partial sums and writes one
        // result.
        unsafe { stream.launch(&self.dot_sum_f64, dot_sum_shape(), values) }
    }

    /// `result[0]` = the dot product of `x` and `y` the naive way: every product is added to one `f32` with
    /// an atomic addition, in any order. Meant for comparison with [`dot`](Self::dot), which is accurate
    /// and hundreds of times as fast. The simulator adds in element order.
    pub fn dot_atomic<'a, 'b, 'c>(
        &self,
        stream: &Stream,
        x: impl Into<DeviceSlice<'a, f32>>,
        y: impl Into<DeviceSlice<'b, f32>>,
        result: impl Into<DeviceSliceMut<'c, f32>>,
    ) -> Result<()> {
        let (x, y, mut result) = (x.into(), y.into(), result.into());
        let items = x.len();
        same_len(items, y.len())?;
        same_len(1, result.len())?;
        stream.fill_bytes(result.reborrow(), 0)?;
        if items == 0 {
            return Ok(());
        }
        let values = (items as u64, x, y, result);
        // SAFETY: these are its parameters; it reads the first `items` elements and writes one.
        unsafe { stream.launch(&self.dot_atomic_f32, LaunchShape::for_items(items), values) }
    }

    /// Keeps the stream busy for about this long.
    pub fn spin(&self, stream: &Stream, nanoseconds: u64) -> Result<()> {
        let shape = LaunchShape {
            grid: [1, 1, 1],
            block: [1, 1, 1],
            shared_bytes: 0,
        };
        // SAFETY: this is its only parameter; it accesses no memory.
        unsafe { stream.launch(&self.spin, shape, (nanoseconds,)) }
    }

    /// `target[i] = source[i] * scale + offset`, with the factors of element `i`'s channel: see
    /// [`Normalize`](crate::Normalize).
    ///
    /// Rounds after the multiplication and after the addition, and once more to bf16: to nearest, ties to
    /// even. The result is bit-identical on every GPU and on the simulator. The first element is the first
    /// of channel 0; any number of elements is allowed. Slices of different lengths return an
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch). Does not block the host.
    ///
    /// ```
    /// # fn main() -> pinlane::Result<()> {
    /// # let device = pinlane::Device::sim("pcie3-x16")?;
    /// # let stream = device.stream()?;
    /// use pinlane::{Builtin, Normalize};
    ///
    /// let kernels = Builtin::load(&device)?;
    /// // Images of 224 × 224 pixels, one plane for each colour.
    /// let (mean, std) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    /// let normalizer = Normalize::mean_std(&mean, &std, 224 * 224)?.upload(&stream)?;
    ///
    /// let mut pixels = device.alloc::<u8>(3 * 224 * 224)?;
    /// stream.fill_bytes(&mut pixels, 255)?;
    /// let mut numbers = device.alloc::<f32>(pixels.len())?;
    /// kernels.normalize(&stream, &normalizer, &pixels, &mut numbers)?;
    /// let numbers = stream.copy_to_vec(&numbers)?;
    /// assert!((numbers[0] - (1.0 - 0.485) / 0.229).abs() < 1e-6);
    /// # Ok(())
    /// # }
    /// ```
    pub fn normalize<'a, 'b, T: NormalizeTarget>(
        &self,
        stream: &Stream,
        normalizer: &Normalizer,
        source: impl Into<DeviceSlice<'a, u8>>,
        target: impl Into<DeviceSliceMut<'b, T>>,
    ) -> Result<()> {
        let (source, target) = (source.into(), target.into());
        self.normalize.run(stream, normalizer, source, target)
    }
}

/// Launches with a thread for each element, but at most `threads`.
///
/// # Safety
/// The kernel accesses the first elements of its slice only, as many as its first parameter says.
unsafe fn update(
    kernel: &Kernel<Update>,
    stream: &Stream,
    operand: u32,
    data: DeviceSliceMut<'_, u32>,
    threads: usize,
) -> Result<()> {
    let items = data.len();
    let shape = LaunchShape::for_items(items.min(threads));
    let values = (items as u64, operand, data);
    // SAFETY: these are its parameters; the caller vouches for its accesses.
    unsafe { stream.launch(kernel, shape, values) }
}

//! Normalises bytes on the device: pixels to numbers, with scale and offset of each channel.

use half::bf16;
use pinlane_kernels::{MAX_CHANNELS, normalize_shape};

use crate::driver_copy::same_len;
use crate::kernel::{In, Out};
use crate::{
    DeviceBuf, DeviceSlice, DeviceSliceMut, Error, Kernel, Module, Pod, Result, Sealed, Stream,
};

/// Scale and offset of a channel.
type Factors = [f32; 2];

/// How bytes become numbers: `x * scale + offset`, with separate factors for each channel.
///
/// Element `i` belongs to channel `i / inner % channels`. For images stored plane by plane (CHW), `inner`
/// is the number of pixels; for interleaved images (HWC), it is 1.
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// use pinlane::Normalize;
///
/// let per_pixel = Normalize::new(&[2.0 / 255.0; 3], &[-1.0; 3], 1)?;
/// assert_eq!((per_pixel.channels(), per_pixel.inner()), (3, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Normalize {
    factors: Vec<Factors>,
    inner: usize,
}

impl Normalize {
    /// Takes a scale and an offset for each channel, in order, and `inner`, the number of consecutive
    /// elements of one channel.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] unless there are 1 to 16 channels, as many offsets as scales, all of them
    /// finite, and `inner` is at least 1.
    pub fn new(scale: &[f32], offset: &[f32], inner: usize) -> Result<Self> {
        let lists = [("scale", scale), ("offset", offset)];
        check_channels(lists, "must have as many as scale")?;
        check(inner > 0, "inner", "must be at least 1")?;
        let pairs = scale.iter().zip(offset);
        Ok(Self {
            factors: pairs.map(|(scale, offset)| [*scale, *offset]).collect(),
            inner,
        })
    }

    /// The usual `(x / 255 - mean) / std` for each channel, as one multiplication and one addition whose
    /// factors are computed in `f64`.
    ///
    /// # Errors
    /// As for [`new`](Self::new), applied to `mean` and `std`. Also if `std` is 0, or so small that the
    /// factors are not finite.
    pub fn mean_std(mean: &[f32], std: &[f32], inner: usize) -> Result<Self> {
        check_channels([("mean", mean), ("std", std)], "must have as many as mean")?;
        let nonzero = std.iter().all(|std| *std != 0.0);
        check(nonzero, "std", "must not be 0")?;
        let scale = |std: &f32| (1.0 / (255.0 * f64::from(*std))) as f32;
        let scale: Vec<_> = std.iter().map(scale).collect();
        let offset = |(mean, std): (&f32, &f32)| (-f64::from(*mean) / f64::from(*std)) as f32;
        let offset: Vec<_> = mean.iter().zip(std).map(offset).collect();
        let finite = scale.iter().chain(&offset).all(|factor| factor.is_finite());
        check(finite, "std", "must not be that close to 0")?;
        Self::new(&scale, &offset, inner)
    }

    /// Number of channels.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.factors.len()
    }

    /// Number of consecutive elements of one channel.
    #[must_use]
    pub fn inner(&self) -> usize {
        self.inner
    }

    /// Scale and offset of each channel.
    #[must_use]
    pub fn factors(&self) -> &[[f32; 2]] {
        &self.factors
    }

    /// Copies the factors to the stream's device. Returns immediately, like any small copy; later launches
    /// wait for it on the device where they must.
    pub fn upload(&self, stream: &Stream) -> Result<Normalizer> {
        let mut table = stream.alloc(self.channels())?;
        stream.copy_to_device(self.factors(), &mut table)?;
        Ok(Normalizer {
            table,
            inner: self.inner() as u64,
        })
    }
}

/// Checks lists with a value for each channel.
fn check_channels(lists: [(&'static str, &[f32]); 2], as_many: &'static str) -> Result<()> {
    let [(first, values), (second, others)] = lists;
    // The message below states the same number.
    const { assert!(MAX_CHANNELS == 16) };
    let fits = (1..=MAX_CHANNELS).contains(&values.len());
    check(fits, first, "must be for 1 to 16 channels")?;
    check(values.len() == others.len(), second, as_many)?;
    for (field, values) in lists {
        let finite = values.iter().all(|value| value.is_finite());
        check(finite, field, "must be finite")?;
    }
    Ok(())
}

fn check(holds: bool, field: &'static str, reason: &'static str) -> Result<()> {
    match holds {
        true => Ok(()),
        false => Err(Error::InvalidConfig { field, reason }),
    }
}

/// A [`Normalize`] whose factors are on a device. Can be used for any number of launches, on any stream.
#[derive(Debug)]
pub struct Normalizer {
    table: DeviceBuf<Factors>,
    inner: u64,
}

/// Number of elements, elements per plane, channels, factors per channel, source, target.
type KernelParams<T> = (u64, u64, u32, In<Factors>, In<u8>, Out<T>);

/// Element types that bytes can be normalised to: `f32` and `half::bf16`.
pub trait NormalizeTarget: Pod + Sealed {
    #[doc(hidden)]
    fn kernel(kernels: &Kernels) -> &Kernel<KernelParams<Self>>;
}

impl NormalizeTarget for f32 {
    fn kernel(kernels: &Kernels) -> &Kernel<KernelParams<Self>> {
        &kernels.to_f32
    }
}

impl Sealed for bf16 {}

impl NormalizeTarget for bf16 {
    fn kernel(kernels: &Kernels) -> &Kernel<KernelParams<Self>> {
        &kernels.to_bf16
    }
}

/// The kernels, one per target type.
#[derive(Debug)]
pub struct Kernels {
    to_f32: Kernel<KernelParams<f32>>,
    to_bf16: Kernel<KernelParams<bf16>>,
}

impl Kernels {
    #[doc(hidden)]
    pub fn find(module: &Module) -> Result<Self> {
        Ok(Self {
            to_f32: module.kernel("pinlane_normalize_u8_f32")?,
            to_bf16: module.kernel("pinlane_normalize_u8_bf16")?,
        })
    }

    /// See [`Builtin::normalize`](crate::Builtin::normalize).
    #[doc(hidden)]
    pub fn run<T: NormalizeTarget>(
        &self,
        stream: &Stream,
        normalizer: &Normalizer,
        source: DeviceSlice<'_, u8>,
        target: DeviceSliceMut<'_, T>,
    ) -> Result<()> {
        let items = source.len();
        same_len(items, target.len())?;
        let table = &normalizer.table;
        // SAFETY: these are its parameters. It reads one factor pair per channel and the first `items`
        // bytes, and writes as many elements.
        unsafe {
            let (channels, table) = (table.len() as u32, table.whole());
            let (items_u64, inner) = (items as u64, normalizer.inner);
            let values = (items_u64, inner, channels, table, source, target);
            stream.launch(T::kernel(self), normalize_shape(items), values)
        }
    }
}

impl Normalizer {
    /// Whether it can still be used: every launch on it can be waited for.
    #[doc(hidden)]
    pub fn is_sound(&self) -> bool {
        !self.table.is_stranded()
    }
}

//! Normalises bytes on the device: pixels to numbers, with factors per channel.

mod factors;

use half::bf16;
use pinlane_kernels::normalize_shape;

pub use factors::Normalize;

use crate::kernel::{In, Out};
use crate::transfer::same_len;
use crate::{Builtin, DeviceBuf, DeviceSlice, DeviceSliceMut, Kernel, Module, Pod, Result, Stream};

/// A [`Normalize`] whose factors are on a device. Can be used for any number of launches, on any stream.
#[derive(Debug)]
pub struct Normalizer {
    table: DeviceBuf<Factors>,
    inner: u64,
}

/// Scale and offset of a channel.
type Factors = [f32; 2];

/// Number of elements, elements per plane, channels, factors per channel, source, target.
type KernelParams<T> = (u64, u64, u32, In<Factors>, In<u8>, Out<T>);

/// Element types that bytes can be normalised to: `f32` and `half::bf16`.
pub trait NormalizeTarget: Pod + sealed::Sealed {}

impl NormalizeTarget for f32 {}
impl NormalizeTarget for bf16 {}

mod sealed {
    use super::{KernelParams, Kernels, bf16};
    use crate::Kernel;

    pub trait Sealed: Sized {
        #[doc(hidden)]
        #[allow(private_interfaces)]
        fn kernel(kernels: &Kernels) -> &Kernel<KernelParams<Self>>;
    }

    #[allow(private_interfaces)]
    impl Sealed for f32 {
        fn kernel(kernels: &Kernels) -> &Kernel<KernelParams<Self>> {
            &kernels.to_f32
        }
    }

    #[allow(private_interfaces)]
    impl Sealed for bf16 {
        fn kernel(kernels: &Kernels) -> &Kernel<KernelParams<Self>> {
            &kernels.to_bf16
        }
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

    /// See [`Builtin::normalize`].
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

impl Normalize {
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

impl Builtin {
    /// `target[i] = source[i] * scale + offset`, with the factors of element `i`'s channel: see
    /// [`Normalize`].
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

//! Copies that convert their elements.

use bytemuck::Pod;
use half::{bf16, f16};
use pinlane_driver::DevicePtr;
use pinlane_kernels::convert;

use super::pieces::PieceList;
use super::staged_copy::StagedCopy;
use crate::driver_copy::{Direction, same_len};
use crate::memory::{DeviceSlice, DeviceSliceMut, Touch};
use crate::{Result, Sealed, Stream};

/// A conversion that a copy can do on the way. Host and device produce the same bits: numbers are
/// rounded to nearest, ties to even; a NaN keeps its sign and becomes quiet.
pub trait Conversion: Sealed + Copy {
    /// Elements of the source.
    type From: Pod;
    /// Elements of the target.
    type To: Pod;

    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn cast(self) -> Cast;
}

/// f32 to bf16: half the bytes over the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct F32ToBf16;

/// f32 to f16: half the bytes over the link. Numbers that are too large become infinity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct F32ToF16;

/// u8 to f32, as `x * scale + offset`, rounded after each step: a quarter of the bytes over the link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct U8ToF32 {
    /// Factor of each byte.
    pub scale: f32,
    /// Added to the product.
    pub offset: f32,
}

macro_rules! conversions {
    ($($name:ident: $from:ty => $to:ty, |$self:ident| $cast:expr;)*) => {$(
        impl Sealed for $name {}

        impl Conversion for $name {
            type From = $from;
            type To = $to;

            #[allow(private_interfaces)]
            fn cast($self) -> Cast {
                $cast
            }
        }
    )*};
}

conversions! {
    F32ToBf16: f32 => bf16, |self| Cast::F32ToBf16;
    F32ToF16: f32 => f16, |self| Cast::F32ToF16;
    U8ToF32: u8 => f32, |self| Cast::U8ToF32(self);
}

/// The conversions, as a value. One side is f32. The other is smaller, and is what goes through the
/// ring and over the link: the staged bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Cast {
    F32ToBf16,
    F32ToF16,
    U8ToF32(U8ToF32),
}

/// Where a copy converts: on the side that has f32.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum ElementConversion {
    /// Bytes are copied as they are.
    None,
    OnHost(Cast),
    OnDevice(Cast),
}

impl Cast {
    /// Staged bytes of one element.
    fn element_bytes(self) -> usize {
        match self {
            Self::F32ToBf16 | Self::F32ToF16 => 2,
            Self::U8ToF32(_) => 1,
        }
    }

    /// Elements in `staged_bytes`.
    pub(super) fn items(self, staged_bytes: usize) -> usize {
        staged_bytes / self.element_bytes()
    }

    /// Size of the same elements as f32.
    fn f32_bytes(self, staged_bytes: usize) -> usize {
        self.items(staged_bytes) * size_of::<f32>()
    }

    fn narrows(self) -> bool {
        !matches!(self, Self::U8ToF32(_))
    }

    /// Converts on the host.
    ///
    /// # Safety
    /// One side holds `staged_bytes`, the other as many elements of f32, both aligned. They do not
    /// overlap, and nothing else writes the source or uses the target.
    pub(super) unsafe fn convert(
        self,
        source: *const u8,
        target: *mut u8,
        staged_bytes: usize,
        streaming: bool,
    ) {
        let items = self.items(staged_bytes);
        // SAFETY: the caller vouches for `items` elements on both sides; all bits are valid.
        unsafe {
            match self {
                Self::F32ToBf16 | Self::F32ToF16 => {
                    let source = std::slice::from_raw_parts(source.cast(), items);
                    let target = std::slice::from_raw_parts_mut(target.cast(), items);
                    match (self, streaming) {
                        (Self::F32ToBf16, false) => convert::f32_to_bf16(source, target),
                        (Self::F32ToBf16, true) => convert::f32_to_bf16_streaming(source, target),
                        (_, false) => convert::f32_to_f16(source, target),
                        (_, true) => convert::f32_to_f16_streaming(source, target),
                    }
                }
                Self::U8ToF32(U8ToF32 { scale, offset }) => {
                    let source = std::slice::from_raw_parts(source, items);
                    let target = std::slice::from_raw_parts_mut(target.cast(), items);
                    match streaming {
                        false => convert::u8_to_f32(source, scale, offset, target),
                        true => convert::u8_to_f32_streaming(source, scale, offset, target),
                    }
                }
            }
        }
    }
}

impl ElementConversion {
    fn of(cast: Cast, direction: Direction) -> Self {
        match cast.narrows() == (direction == Direction::Upload) {
            true => Self::OnHost(cast),
            false => Self::OnDevice(cast),
        }
    }

    pub(super) fn is_on_host(self) -> bool {
        matches!(self, Self::OnHost(_))
    }

    /// Host memory of `staged_bytes`.
    pub(super) fn host_bytes(self, staged_bytes: usize) -> usize {
        match self {
            Self::OnHost(cast) => cast.f32_bytes(staged_bytes),
            Self::None | Self::OnDevice(_) => staged_bytes,
        }
    }

    /// Device memory of `staged_bytes`.
    pub(super) fn device_bytes(self, staged_bytes: usize) -> usize {
        match self {
            Self::OnDevice(cast) => cast.f32_bytes(staged_bytes),
            Self::None | Self::OnHost(_) => staged_bytes,
        }
    }
}

impl Stream {
    /// Copies ordinary memory to the device and converts its elements, on the side that sends fewer
    /// bytes over the link. Otherwise as [`copy_to_device`](Self::copy_to_device).
    ///
    /// ```
    /// # fn main() -> pinlane::Result<()> {
    /// # let device = pinlane::Device::sim("pcie3-x16")?;
    /// # let stream = device.stream()?;
    /// use pinlane::{F32ToBf16, U8ToF32};
    ///
    /// let mut weights = device.alloc::<half::bf16>(1000)?;
    /// stream.upload_as(F32ToBf16, &[1.5; 1000], &mut weights)?;
    /// let mut pixels = device.alloc::<f32>(256)?;
    /// let normalise = U8ToF32 { scale: 2.0 / 255.0, offset: -1.0 };
    /// stream.upload_as(normalise, &[255; 256], &mut pixels)?;
    /// # assert_eq!(stream.copy_to_vec(&weights)?[999].to_f32(), 1.5);
    /// # assert_eq!(stream.copy_to_vec(&pixels)?[0], 1.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn upload_as<'a, C: Conversion>(
        &self,
        conversion: C,
        source: &[C::From],
        target: impl Into<DeviceSliceMut<'a, C::To>>,
    ) -> Result<()> {
        let target = target.into();
        same_len(source.len(), target.len())?;
        let (host, device) = (source.as_ptr().cast_mut().cast(), target.device_ptr());
        let (cast, touch) = (conversion.cast(), target.touch());
        self.copy_as(cast, Direction::Upload, host, device, source.len(), touch)
    }

    /// Copies device memory into ordinary memory and converts its elements, on the side that sends
    /// fewer bytes over the link. Otherwise as [`copy_to_host`](Self::copy_to_host).
    pub fn download_as<'a, C: Conversion>(
        &self,
        conversion: C,
        source: impl Into<DeviceSlice<'a, C::From>>,
        target: &mut [C::To],
    ) -> Result<()> {
        let source = source.into();
        same_len(source.len(), target.len())?;
        let (host, device) = (target.as_mut_ptr().cast(), source.device_ptr());
        let (cast, touch) = (conversion.cast(), source.touch());
        self.copy_as(cast, Direction::Download, host, device, target.len(), touch)
    }

    fn copy_as(
        &self,
        cast: Cast,
        direction: Direction,
        host: *mut u8,
        device: DevicePtr,
        items: usize,
        touch: Touch<'_>,
    ) -> Result<()> {
        let touches = [touch];
        if items == 0 {
            return self.copy_nothing(&touches);
        }
        self.refuse_capture()?;
        let pieces = PieceList::single(host, device, items * cast.element_bytes());
        let express = self.express();
        let slot = express.ring.claim()?;
        let copy = StagedCopy {
            conversion: ElementConversion::of(cast, direction),
            ..self.staged(direction, &pieces, &touches)
        };
        express.run(slot, copy)
    }
}

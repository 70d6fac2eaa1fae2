//! Copies that change the type of the elements on the way.

use bytemuck::Pod;
use half::{bf16, f16};

use super::super::dock::Dock;
use super::super::haul::Haul;
use super::super::route::Route;
use crate::memory::{DeviceSlice, DeviceSliceMut};
use crate::transfer::same_len;
use crate::{Result, Stream};

/// A change of type that a copy can make on the way. The same bits come out whichever side makes it:
/// numbers are rounded to nearest, ties to even; a NaN keeps its sign and becomes quiet.
pub trait Conversion: sealed::Sealed + Copy {
    /// Elements of the source.
    type From: Pod;
    /// Elements of the target.
    type To: Pod;
}

/// f32 to bf16: half the bytes over the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct F32ToBf16;

/// f32 to f16: half the bytes over the link. Too large a number becomes infinity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct F32ToF16;

/// u8 to f32, as `x * scale + offset`, rounded after each step: a quarter of the bytes over the link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct U8ToF32 {
    /// What each byte is multiplied by.
    pub scale: f32,
    /// What is added then.
    pub offset: f32,
}

impl Conversion for F32ToBf16 {
    type From = f32;
    type To = bf16;
}

impl Conversion for F32ToF16 {
    type From = f32;
    type To = f16;
}

impl Conversion for U8ToF32 {
    type From = u8;
    type To = f32;
}

mod sealed {
    use super::{Dock, Haul};

    /// What each side does.
    pub trait Sealed {
        /// Bytes of an element on the wire: the smaller of both.
        const WIRE_BYTES: usize;

        #[doc(hidden)]
        #[allow(private_interfaces)]
        fn up(self) -> (Haul, Dock);

        #[doc(hidden)]
        #[allow(private_interfaces)]
        fn down(self) -> (Haul, Dock);
    }
}

#[allow(private_interfaces)]
impl sealed::Sealed for F32ToBf16 {
    const WIRE_BYTES: usize = 2;

    fn up(self) -> (Haul, Dock) {
        (Haul::ToBf16, Dock::Copy)
    }

    fn down(self) -> (Haul, Dock) {
        (Haul::Copy, Dock::ToBf16)
    }
}

#[allow(private_interfaces)]
impl sealed::Sealed for F32ToF16 {
    const WIRE_BYTES: usize = 2;

    fn up(self) -> (Haul, Dock) {
        (Haul::ToF16, Dock::Copy)
    }

    fn down(self) -> (Haul, Dock) {
        (Haul::Copy, Dock::ToF16)
    }
}

#[allow(private_interfaces)]
impl sealed::Sealed for U8ToF32 {
    const WIRE_BYTES: usize = 1;

    fn up(self) -> (Haul, Dock) {
        let Self { scale, offset } = self;
        (Haul::Copy, Dock::FromU8 { scale, offset })
    }

    fn down(self) -> (Haul, Dock) {
        let Self { scale, offset } = self;
        (Haul::FromU8 { scale, offset }, Dock::Copy)
    }
}

impl Stream {
    /// Copy ordinary memory to the device and change its type on the way, on whichever side moves
    /// fewer bytes over the link. Otherwise as [`copy_to_device`](Self::copy_to_device).
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
        let touches = [target.touch()];
        if source.is_empty() {
            return self.copy_nothing(&touches);
        }
        self.refuse_capture()?;
        let (haul, dock) = conversion.up();
        let route = Route::one(
            source.as_ptr().cast_mut().cast(),
            target.device_ptr(),
            source.len() * C::WIRE_BYTES,
        );
        let express = self.express();
        let slot = express.ring.claim()?;
        express.upload(slot, self.trip(&route, &touches, haul, dock))
    }

    /// Copy device memory into ordinary memory and change its type on the way, on whichever side
    /// moves fewer bytes over the link. Otherwise as [`copy_to_host`](Self::copy_to_host).
    pub fn download_as<'a, C: Conversion>(
        &self,
        conversion: C,
        source: impl Into<DeviceSlice<'a, C::From>>,
        target: &mut [C::To],
    ) -> Result<()> {
        let source = source.into();
        same_len(source.len(), target.len())?;
        let touches = [source.touch()];
        if target.is_empty() {
            return self.copy_nothing(&touches);
        }
        self.refuse_capture()?;
        let (haul, dock) = conversion.down();
        let route = Route::one(
            target.as_mut_ptr().cast(),
            source.device_ptr(),
            target.len() * C::WIRE_BYTES,
        );
        let express = self.express();
        let slot = express.ring.claim()?;
        express.download(slot, self.trip(&route, &touches, haul, dock))
    }
}

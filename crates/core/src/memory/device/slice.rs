//! Sub-ranges of device memory, for reading or writing.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::Pod;
use pinlane_driver::DevicePtr;

use super::{DeviceBuf, DeviceRegion, Touch};
use crate::memory::buffer_macros::sub_slices;
use crate::transfer_protocol::Extent;
use crate::{Result, Stream};

/// Defines a range of device memory.
macro_rules! device_slice {
    ($(#[$docs:meta])* $slice:ident, $elements:ty, writes: $writes:literal) => {
        $(#[$docs])*
        pub struct $slice<'a, T> {
            region: &'a DeviceRegion,
            start: usize,
            len: usize,
            elements: PhantomData<$elements>,
        }

        impl<'a, T: Pod> $slice<'a, T> {
            pub(super) fn new(region: &'a DeviceRegion, start: usize, len: usize) -> Self {
                Self {
                    region,
                    start,
                    len,
                    elements: PhantomData,
                }
            }

            /// Number of elements.
            #[must_use]
            pub fn len(&self) -> usize {
                self.len
            }

            /// Whether it is empty.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len == 0
            }

            /// Address of the first element.
            #[must_use]
            pub fn device_ptr(&self) -> DevicePtr {
                self.region.ptr().offset(self.start * size_of::<T>())
            }

            /// Makes later work on `stream` wait for all earlier work that must come before its use, for
            /// kernels and libraries that use the memory by its [address](Self::device_ptr). With a slice for
            /// reading that is earlier writing, with one for writing also earlier reading. The host does not
            /// wait. See [`used_on`](Self::used_on) for what comes afterwards.
            ///
            /// # Errors
            /// [`WrongDevice`](crate::Error::WrongDevice), or the driver's error, for example while the stream
            /// is being captured.
            pub fn ready_on(&self, stream: &Stream) -> Result<()> {
                stream.wait_for_uses(&[self.touch()])
            }

            /// Records that everything submitted to `stream` so far may use the memory, also what others
            /// submitted to it ([`Stream::from_raw`]). Later work waits for it as for a copy: writing for a
            /// slice for reading, all work for a slice for writing. The memory is freed or reused after it.
            ///
            /// If this fails, or the stream is not known, drop the memory by
            /// [`Device::release_when_idle`](crate::Device::release_when_idle).
            ///
            /// ```
            /// # fn main() -> pinlane::Result<()> {
            /// # let device = pinlane::Device::sim("h200")?;
            /// # let (ours, current_stream) = (device.stream()?, 0);
            /// # let mut buffer = device.alloc::<f32>(1024)?;
            /// # ours.copy_to_device(&[1.0; 1024], &mut buffer)?;
            /// use pinlane::Stream;
            ///
            /// // SAFETY: the other library's current stream.
            /// let theirs = unsafe { Stream::from_raw(&device, current_stream) };
            /// buffer.whole().ready_on(&theirs)?;
            /// // … the other library reads at `buffer.device_ptr()` on its stream …
            /// buffer.whole().used_on(&theirs)?;
            /// ours.copy_to_device(&[2.0; 1024], &mut buffer)?; // behind that
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// # Errors
            /// As for [`ready_on`](Self::ready_on).
            pub fn used_on(&self, stream: &Stream) -> Result<()> {
                stream.submit(&[self.touch()], |_, _| Ok(()))?;
                Ok(())
            }

            fn sub(&self, range: Range<usize>) -> Self {
                Self::new(self.region, self.start + range.start, range.len())
            }

            /// Reinterprets the memory as elements of another type, which must fit it exactly.
            #[doc(hidden)]
            pub fn cast<U: Pod>(self) -> $slice<'a, U> {
                let (_, Range { start, end }) = self.span();
                let bytes = size_of::<U>();
                let fits = bytes > 0 && start.is_multiple_of(bytes) && end.is_multiple_of(bytes);
                assert!(fits, "bytes {start} to {end} as elements of {bytes} bytes");
                $slice::new(self.region, start / bytes, (end - start) / bytes)
            }

            #[doc(hidden)]
            pub fn touch(&self) -> Touch<'a> {
                Touch {
                    region: self.region,
                    extent: Extent::One(self.span().1),
                    writes: $writes,
                }
            }

            /// The byte range and the memory it is in.
            pub(crate) fn span(&self) -> (&'a DeviceRegion, Range<usize>) {
                let (start, end) = (self.start, self.start + self.len);
                (self.region, start * size_of::<T>()..end * size_of::<T>())
            }
        }

        impl<T> fmt::Debug for $slice<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($slice))
                    .field("buffer", &self.region.ptr())
                    .field("start", &self.start)
                    .field("len", &self.len)
                    .finish()
            }
        }
    };
}

device_slice! {
    /// A range of device memory, for reading.
    DeviceSlice, &'a T, writes: false
}

device_slice! {
    /// A range of device memory, for writing. Two of them never overlap.
    DeviceSliceMut, &'a mut T, writes: true
}

sub_slices!(DeviceSlice);
sub_slices!(mut DeviceSliceMut);

impl<T> Clone for DeviceSlice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DeviceSlice<'_, T> {}

impl<'a, T: Pod> From<&'a DeviceBuf<T>> for DeviceSlice<'a, T> {
    fn from(buffer: &'a DeviceBuf<T>) -> Self {
        buffer.whole()
    }
}

impl<T: Pod> DeviceSliceMut<'_, T> {
    /// Borrows the slice for a shorter time, so that it can be used again afterwards.
    #[must_use]
    pub fn reborrow(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut { ..*self }
    }

    /// The same range, for reading.
    #[must_use]
    pub fn as_read(&self) -> DeviceSlice<'_, T> {
        DeviceSlice::new(self.region, self.start, self.len)
    }
}

impl<'a, T: Pod> From<&'a mut DeviceBuf<T>> for DeviceSliceMut<'a, T> {
    fn from(buffer: &'a mut DeviceBuf<T>) -> Self {
        buffer.whole_mut()
    }
}

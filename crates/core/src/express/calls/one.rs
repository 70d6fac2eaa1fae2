//! Copies of one slice.

use bytemuck::Pod;

use super::super::ALONE_BYTES;
use super::super::route::Route;
use super::super::small::{self, POCKET_BYTES};
use crate::memory::{DeviceSlice, DeviceSliceMut, prefer_huge_pages};
use crate::transfer::same_len;
use crate::{Error, Result, Stream};

/// From this size on fresh memory is asked to be in huge pages: less to fault in.
const HUGE_BYTES: usize = 8 << 20;

impl Stream {
    /// Copy ordinary memory to the device, at nearly the speed of pinned memory.
    ///
    /// Returns as soon as `source` may be reused; the bytes arrive in stream order, so that all
    /// later work of this stream, and of others on the same buffer, sees them. On an error the
    /// contents of `target` are unspecified.
    ///
    /// ```
    /// # fn main() -> pinlane::Result<()> {
    /// # let device = pinlane::Device::sim("pcie3-x16")?;
    /// let stream = device.stream()?;
    /// let weights = vec![0.5f32; 1 << 20]; // any memory
    /// let mut on_device = device.alloc(weights.len())?;
    /// stream.copy_to_device(&weights, &mut on_device)?;
    /// # assert_eq!(stream.copy_to_vec(&on_device)?, weights);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_to_device<'a, T: Pod>(
        &self,
        source: &[T],
        target: impl Into<DeviceSliceMut<'a, T>>,
    ) -> Result<()> {
        let mut target = target.into();
        same_len(source.len(), target.len())?;
        let bytes: &[u8] = bytemuck::cast_slice(source);
        if bytes.is_empty() {
            return self.copy_nothing(&[target.touch()]);
        }
        if bytes.len() <= POCKET_BYTES && self.is_quiet() && !self.would_wait(&target.touch()) {
            // The driver does best here, and every nanosecond before it shows.
            let copied = self.driver_copy_to_device(source, target.reborrow());
            if !Self::is_locked_in_part(&copied) {
                return copied;
            }
        }
        self.refuse_capture()?;
        let express = self.express();
        let small = express.is_small(bytes.len());
        // A busy stream would keep the driver's copy waiting for what is there; an idle one is
        // where it does best.
        let plain = match small {
            true => (self.is_quiet() || self.is_idle()?) && !self.would_wait(&target.touch()),
            false => express.is_outrun(bytes.len()) || self.is_page_locked(bytes),
        };
        if plain {
            let copied = self.driver_copy_to_device(source, target.reborrow());
            if !Self::is_locked_in_part(&copied) {
                return copied;
            }
        }
        let (place, touches) = (target.device_ptr(), [target.touch()]);
        if small && bytes.len() <= express.ring.slot_bytes() {
            let ring = express.ring_for_small(bytes.len());
            return match express.board(ring)? {
                Some(slot) => small::upload(ring, slot, self, &touches[0], bytes, place),
                None => self.driver_copy_to_device(source, target),
            };
        }
        let Some(slot) = express.board(&express.ring)? else {
            return self.driver_copy_to_device(source, target);
        };
        let route = Route::one(bytes.as_ptr().cast_mut(), place, bytes.len());
        express.upload(slot, self.plain_trip(&route, &touches))
    }

    /// Copy device memory into ordinary memory, at nearly the speed of pinned memory, and return
    /// when it is there. On an error the contents of `target` are unspecified.
    pub fn copy_to_host<'a, T: Pod>(
        &self,
        source: impl Into<DeviceSlice<'a, T>>,
        target: &mut [T],
    ) -> Result<()> {
        let source = source.into();
        same_len(source.len(), target.len())?;
        if size_of_val(target) == 0 {
            return self.copy_nothing(&[source.touch()]);
        }
        self.refuse_capture()?;
        let express = self.express();
        let bytes = size_of_val(target);
        let small = express.is_small(bytes);
        let plain = match small {
            true => bytes > ALONE_BYTES,
            false => express.is_outrun(bytes) || self.is_page_locked(bytemuck::cast_slice(target)),
        };
        if plain {
            let copied = self.driver_copy_to_host(source, target);
            if !Self::is_locked_in_part(&copied) {
                return copied;
            }
        }
        let (place, touches) = (source.device_ptr(), [source.touch()]);
        if small && bytes <= express.ring.slot_bytes() {
            let ring = express.ring_for_small(bytes);
            let Some(slot) = express.board(ring)? else {
                return self.driver_copy_to_host(source, target);
            };
            let target = bytemuck::cast_slice_mut(target);
            return small::download(ring, slot, self, &touches[0], place, target);
        }
        let Some(slot) = express.board(&express.ring)? else {
            return self.driver_copy_to_host(source, target);
        };
        let route = Route::one(target.as_mut_ptr().cast(), place, bytes);
        express.download(slot, self.plain_trip(&route, &touches))
    }

    /// Copy device memory into a new vector. The lanes touch its pages first, several at a time,
    /// which is most of the cost of fresh memory.
    pub fn copy_to_vec<'a, T: Pod>(&self, source: impl Into<DeviceSlice<'a, T>>) -> Result<Vec<T>> {
        let source = source.into();
        let (len, bytes) = (source.len(), source.len() * size_of::<T>());
        let element_bytes = size_of::<T>();
        let mut target: Vec<T> = Vec::new();
        if target.try_reserve_exact(len).is_err() {
            return Err(Error::TooLarge { len, element_bytes });
        }
        let express = self.express();
        if bytes >= HUGE_BYTES && !express.is_outrun(bytes) {
            self.refuse_capture()?;
            if let Some(slot) = express.board(&express.ring)? {
                let start: *mut u8 = target.as_mut_ptr().cast();
                // SAFETY: the vector's own, not touched yet.
                unsafe { prefer_huge_pages(start, bytes) };
                let route = Route::one(start, source.device_ptr(), bytes);
                express.download(slot, self.plain_trip(&route, &[source.touch()]))?;
                // SAFETY: the download has written all of them, and any bits are a valid element.
                unsafe { target.set_len(len) };
                return Ok(target);
            }
        }
        target.resize(len, T::zeroed());
        self.copy_to_host(source, &mut target)?;
        Ok(target)
    }
}

//! Copies of one slice of ordinary memory.

use bytemuck::Pod;
use pinlane_driver::{ErrorKind, PointerKind};

use super::pieces::PieceList;
use super::ring::Ring;
use super::small_copy::{self, SMALL_SLOT_BYTES};
use super::{ALONE_BYTES_AT_MOST, Express};
use crate::driver_copy::{Direction, same_len};
use crate::helper_threads::{self, Readiness};
use crate::memory::{DeviceSlice, DeviceSliceMut, extend_with_zeros, prefer_huge_pages};
use crate::{Error, Result, Stream};

/// From this size on, fresh memory uses huge pages if possible: fewer page faults.
const HUGE_PAGES_BYTES: usize = 8 << 20;

impl Stream {
    /// Copies ordinary memory to the device, at nearly the speed of pinned memory.
    ///
    /// Returns as soon as `source` may be reused. The bytes arrive in stream order: all later work
    /// of this stream, and of other streams on the same buffer, sees them. On an error the contents
    /// of `target` are unspecified.
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
        if bytes.len() <= SMALL_SLOT_BYTES && self.is_quiet() && !self.would_wait(&target.touch()) {
            // The driver is fastest here, and every nanosecond before its call shows.
            let copied = self.driver_copy_to_device(source, target.reborrow());
            if !is_refused_as_partly_locked(&copied) {
                return copied;
            }
        }
        self.refuse_capture()?;
        let express = self.express();
        let small = express.is_small(bytes.len());
        // On an idle stream the driver's copy is fastest. On a busy one it would wait for all
        // earlier work.
        let use_driver = match small {
            true => (self.is_quiet() || self.is_idle()?) && !self.would_wait(&target.touch()),
            false => express.is_driver_faster(bytes.len()) || self.is_page_locked(bytes),
        };
        if use_driver {
            let copied = self.driver_copy_to_device(source, target.reborrow());
            if !is_refused_as_partly_locked(&copied) {
                return copied;
            }
        }
        let ring = express.ring_for(small, bytes.len());
        let Some(slot) = express.claim_first_slot(ring)? else {
            return self.driver_copy_to_device(source, target);
        };
        let (place, touch) = (target.device_ptr(), target.touch());
        if small && bytes.len() <= ring.slot_bytes {
            return small_copy::upload(ring, slot, self, touch, bytes, place);
        }
        let pieces = PieceList::single(bytes.as_ptr().cast_mut(), place, bytes.len());
        express.run(slot, self.staged(Direction::Upload, &pieces, &[touch]))
    }

    /// Copies device memory into ordinary memory, at nearly the speed of pinned memory, and returns
    /// when it has arrived. On an error the contents of `target` are unspecified.
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
        let use_driver = match small {
            true => bytes > SMALL_SLOT_BYTES,
            false => {
                express.is_driver_faster(bytes) || self.is_page_locked(bytemuck::cast_slice(target))
            }
        };
        if use_driver {
            let copied = self.driver_copy_to_host(source, target);
            if !is_refused_as_partly_locked(&copied) {
                return copied;
            }
        }
        let ring = express.ring_for(small, bytes);
        let Some(slot) = express.claim_first_slot(ring)? else {
            return self.driver_copy_to_host(source, target);
        };
        let (place, touch) = (source.device_ptr(), source.touch());
        if small && bytes <= ring.slot_bytes {
            let target = bytemuck::cast_slice_mut(target);
            return small_copy::download(ring, slot, self, touch, place, target);
        }
        let pieces = PieceList::single(target.as_mut_ptr().cast(), place, bytes);
        express.run(slot, self.staged(Direction::Download, &pieces, &[touch]))
    }

    /// Copies device memory into a new vector. Several threads fault in its pages, which is most of
    /// the cost of fresh memory.
    pub fn copy_to_vec<'a, T: Pod>(&self, source: impl Into<DeviceSlice<'a, T>>) -> Result<Vec<T>> {
        let source = source.into();
        let (len, bytes) = (source.len(), source.len() * size_of::<T>());
        let element_bytes = size_of::<T>();
        let mut target: Vec<T> = Vec::new();
        if target.try_reserve_exact(len).is_err() {
            return Err(Error::TooLarge { len, element_bytes });
        }
        let express = self.express();
        if bytes >= HUGE_PAGES_BYTES && !express.is_driver_faster(bytes) {
            self.refuse_capture()?;
            if let Some(slot) = express.claim_first_slot(&express.ring)? {
                let start: *mut u8 = target.as_mut_ptr().cast();
                // SAFETY: memory of the vector, not written yet.
                unsafe { prefer_huge_pages(start, bytes) };
                let pieces = PieceList::single(start, source.device_ptr(), bytes);
                let touches = [source.touch()];
                express.run(slot, self.staged(Direction::Download, &pieces, &touches))?;
                // SAFETY: the download has written all elements, and all bits are valid.
                unsafe { target.set_len(len) };
                return Ok(target);
            }
        }
        extend_with_zeros(&mut target, len);
        self.copy_to_host(source, &mut target)?;
        Ok(target)
    }

    /// Whether a copy of so many bytes of pageable memory would use the express lane now, rather than the driver's
    /// own copy.
    pub(crate) fn prefers_express_lane(&self, bytes: usize) -> bool {
        let express = self.express();
        !express.is_small(bytes) && !express.is_driver_faster(bytes)
    }

    /// Whether a slice is page-locked at both ends, so that the driver can copy it directly.
    fn is_page_locked(&self, slice: &[u8]) -> bool {
        let (Some(first), Some(last)) = (slice.first(), slice.last()) else {
            return false;
        };
        [first, last].into_iter().all(|end| {
            let address = std::ptr::from_ref(end).expose_provenance() as u64;
            match self.driver().pointer_kind(address) {
                Ok(kind) => matches!(kind, PointerKind::Pinned | PointerKind::Registered),
                Err(error) => {
                    self.shared().core.keep_stray(error);
                    false
                }
            }
        })
    }
}

/// Whether the driver refused memory that is only partly page-locked. It can be staged all the same.
fn is_refused_as_partly_locked(copied: &Result<()>) -> bool {
    matches!(copied, Err(Error::Driver(error)) if error.kind == ErrorKind::InvalidValue)
}

impl Express {
    /// Whether a copy is too small for several lanes. Waking them takes longer than such a copy.
    fn is_small(&self, bytes: usize) -> bool {
        let (awake, asleep) = (
            self.config.threshold_bytes,
            self.config.threshold_asleep_bytes,
        );
        if self.config.lanes == 1 || bytes < awake {
            return bytes < awake;
        }
        match helper_threads::readiness() {
            Readiness::Awake => false,
            Readiness::Asleep => bytes < asleep,
            Readiness::FastAsleep => bytes < asleep.saturating_add(asleep - awake),
        }
    }

    /// Whether the driver, which stages and copies at the same time, outruns a single lane.
    fn is_driver_faster(&self, bytes: usize) -> bool {
        let alone = self.config.lanes == 1 && self.core.driver.info().simulated.is_none();
        alone && bytes > ALONE_BYTES_AT_MOST
    }

    /// The ring for a copy, which the calling thread stages alone if it is small.
    fn ring_for(&self, small: bool, bytes: usize) -> &Ring {
        match small && bytes <= SMALL_SLOT_BYTES {
            true => &self.small_ring,
            false => &self.ring,
        }
    }
}

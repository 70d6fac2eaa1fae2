//! Device buffers that know who uses them.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Range, RangeBounds};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;
use pinlane_driver::DevicePtr;

use super::{DeviceMemory, bytes_of, resolve};
use crate::core::{Access, Extent, Ledger};
use crate::device::Shared;
use crate::fence::DeviceFence;
use crate::stream::SubmitError;
use crate::{Device, Error, Result, Stream};

/// Memory on the device.
///
/// It knows its last writer and all its readers since, range by range, so that using it on another
/// stream waits for exactly what it must. Dropping it never waits: the memory goes back when its
/// last use is done.
pub struct DeviceBuf<T> {
    region: DeviceRegion,
    len: usize,
    elements: PhantomData<T>,
}

/// Device memory with its books. Sub-ranges write into the same books as the whole.
pub(crate) struct DeviceRegion {
    shared: Arc<Shared>,
    /// Taken out once, by `drop`.
    memory: ManuallyDrop<DeviceMemory>,
    ledger: Mutex<Ledger<DeviceFence>>,
    /// Work whose end nobody can tell uses it: never to be freed.
    stranded: AtomicBool,
}

impl DeviceRegion {
    /// The address of its first byte.
    pub(crate) fn ptr(&self) -> DevicePtr {
        self.memory.ptr()
    }
}

/// One use of device memory by work that is about to be submitted.
#[derive(Clone)]
pub(crate) struct Touch<'a> {
    pub(crate) region: &'a DeviceRegion,
    pub(crate) extent: Extent,
    pub(crate) writes: bool,
}

impl Touch<'_> {
    pub(crate) fn access(&self, stream: u64) -> Access {
        Access {
            stream,
            extent: self.extent.clone(),
            writes: self.writes,
        }
    }
}

impl Device {
    /// Device memory for `len` elements. Their values are unspecified.
    pub fn alloc<T: Pod>(&self, len: usize) -> Result<DeviceBuf<T>> {
        self.shared.lot.reclaim();
        let memory = DeviceMemory::plain(&self.shared.link, bytes_of::<T>(len)?)?;
        Ok(DeviceBuf::new(&self.shared, memory, len))
    }
}

impl Stream {
    /// Device memory for `len` elements, allocated in stream order: faster than
    /// [`Device::alloc`], and usable on other streams all the same. Their values are unspecified.
    pub fn alloc<T: Pod>(&self, len: usize) -> Result<DeviceBuf<T>> {
        let shared = self.shared();
        if !shared.link.driver.info().stream_ordered_alloc {
            return Device {
                shared: Arc::clone(shared),
            }
            .alloc(len);
        }
        shared.lot.reclaim();
        let bytes = bytes_of::<T>(len)?;
        let mut memory = None;
        let submitted = self.submit(&[], |_, stream| {
            memory = Some(DeviceMemory::ordered(&shared.link, bytes, stream)?);
            Ok(())
        });
        let fence = match submitted {
            Ok(fence) => fence,
            Err(SubmitError::Refused(error)) => return Err(error),
            Err(SubmitError::Stranded(error)) => {
                // Nobody can tell when it could be freed.
                std::mem::forget(memory);
                return Err(error);
            }
        };
        let memory = memory.expect("allocated by the submission");
        let mut buffer = DeviceBuf::new(shared, memory, len);
        // Other streams may use it only after this stream has got to the allocation.
        let access = buffer.whole_mut().touch().access(self.id());
        buffer.region.ledger().record(access, fence);
        Ok(buffer)
    }
}

impl<T: Pod> DeviceBuf<T> {
    pub(crate) fn new(shared: &Arc<Shared>, memory: DeviceMemory, len: usize) -> Self {
        Self {
            region: DeviceRegion {
                shared: Arc::clone(shared),
                memory: ManuallyDrop::new(memory),
                ledger: Mutex::new(Ledger::new()),
                stranded: AtomicBool::new(false),
            },
            len,
            elements: PhantomData,
        }
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of the first element, for kernels and foreign libraries. What they do with it
    /// is not tracked.
    #[must_use]
    pub fn device_ptr(&self) -> DevicePtr {
        self.region.memory.ptr()
    }

    /// A piece that is written while others of the same buffer are: the books put those in order
    /// that overlap.
    ///
    /// # Panics
    /// When the range is outside.
    pub(crate) fn shared_range_mut(&self, range: Range<usize>) -> DeviceSliceMut<'_, T> {
        let range = resolve(range, self.len);
        DeviceSliceMut {
            region: &self.region,
            start: range.start,
            len: range.len(),
            elements: PhantomData,
        }
    }

    /// Whether earlier work on it can never be waited for.
    pub(crate) fn is_stranded(&self) -> bool {
        self.region.stranded.load(Ordering::Relaxed)
    }

    /// All of it, to be read.
    #[must_use]
    pub fn whole(&self) -> DeviceSlice<'_, T> {
        DeviceSlice {
            region: &self.region,
            start: 0,
            len: self.len,
            elements: PhantomData,
        }
    }

    /// All of it, to be written.
    #[must_use]
    pub fn whole_mut(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut {
            region: &self.region,
            start: 0,
            len: self.len,
            elements: PhantomData,
        }
    }

    /// A piece, to be read.
    ///
    /// # Panics
    /// When the range is outside of the buffer.
    #[must_use]
    pub fn range(&self, range: impl RangeBounds<usize>) -> DeviceSlice<'_, T> {
        self.whole().range(range)
    }

    /// A piece, to be written.
    ///
    /// # Panics
    /// When the range is outside of the buffer.
    #[must_use]
    pub fn range_mut(&mut self, range: impl RangeBounds<usize>) -> DeviceSliceMut<'_, T> {
        self.whole_mut().range(range)
    }
}

/// For memory of another library.
#[cfg(feature = "cudarc")]
impl<T: Pod> DeviceBuf<T> {
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.region.shared
    }

    pub(crate) fn owner_mut(&mut self) -> Option<&mut super::Owner> {
        self.region.memory.owner_mut()
    }

    /// Give the memory up, without freeing it. The caller has put the owner's later work behind
    /// all uses so far.
    pub(crate) fn take_owner(&mut self) -> Option<super::Owner> {
        let owner = self.region.memory.take_owner()?;
        *self.region.ledger() = Ledger::new();
        *self.region.stranded.get_mut() = false;
        Some(owner)
    }

    /// Fences of all uses; `None` where nobody can tell when they end.
    pub(crate) fn uses(&self) -> Option<Vec<DeviceFence>> {
        let stranded = self.region.stranded.load(Ordering::Relaxed);
        (!stranded).then(|| self.region.ledger().fences().cloned().collect())
    }

    /// Every use waits for `fence`, which is on a stream of the owner's.
    pub(crate) fn used_by_owner_until(&mut self, fence: DeviceFence) {
        let access = self.whole_mut().touch().access(Shared::next_stream_id());
        self.region.ledger().record(access, fence);
    }
}

impl<T> fmt::Debug for DeviceBuf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBuf")
            .field("ptr", &self.region.memory.ptr())
            .field("len", &self.len)
            .finish()
    }
}

impl DeviceRegion {
    /// Whether streams of this device may use it.
    pub(crate) fn may_be_used_by(&self, shared: &Arc<Shared>) -> Result<()> {
        if !Arc::ptr_eq(&self.shared, shared) {
            Err(Error::WrongDevice)
        } else if self.stranded.load(Ordering::Relaxed) {
            Err(Error::Stranded)
        } else {
            Ok(())
        }
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger<DeviceFence>> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Work whose end nobody can tell uses the memory.
    pub(crate) fn strand(&self) {
        self.stranded.store(true, Ordering::Relaxed);
    }
}

impl Drop for DeviceRegion {
    fn drop(&mut self) {
        if self.stranded.load(Ordering::Relaxed) {
            return;
        }
        // SAFETY: taken here only, and never used again.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        let uses = self.ledger().fences().cloned().collect();
        self.shared.return_memory(memory, uses);
    }
}

/// A piece of device memory, to be read.
pub struct DeviceSlice<'a, T> {
    region: &'a DeviceRegion,
    start: usize,
    len: usize,
    elements: PhantomData<&'a T>,
}

/// A piece of device memory, to be written. Two of them never overlap.
pub struct DeviceSliceMut<'a, T> {
    region: &'a DeviceRegion,
    start: usize,
    len: usize,
    elements: PhantomData<&'a mut T>,
}

impl<T> Clone for DeviceSlice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DeviceSlice<'_, T> {}

impl<'a, T: Pod> DeviceSlice<'a, T> {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of the first element.
    #[must_use]
    pub fn device_ptr(&self) -> DevicePtr {
        self.region.memory.ptr().offset(self.start * size_of::<T>())
    }

    /// A piece of it.
    ///
    /// # Panics
    /// When the range is outside.
    #[must_use]
    pub fn range(self, range: impl RangeBounds<usize>) -> Self {
        let range = resolve(range, self.len);
        Self {
            start: self.start + range.start,
            len: range.len(),
            ..self
        }
    }

    /// The same memory as elements of another kind, which must fit it exactly.
    pub(crate) fn cast<U: Pod>(self) -> DeviceSlice<'a, U> {
        let (start, len) = cast::<T, U>(self.start, self.len);
        DeviceSlice {
            region: self.region,
            start,
            len,
            elements: PhantomData,
        }
    }

    pub(crate) fn touch(&self) -> Touch<'a> {
        Touch {
            region: self.region,
            extent: Extent::One(self.span().1),
            writes: false,
        }
    }

    /// Which bytes of which memory.
    pub(crate) fn span(&self) -> (&'a DeviceRegion, Range<usize>) {
        (self.region, span::<T>(self.start, self.len))
    }
}

impl<'a, T: Pod> DeviceSliceMut<'a, T> {
    /// The same for a shorter time, so that it can be used again after that.
    #[must_use]
    pub fn reborrow(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut { ..*self }
    }

    /// The same, to be read.
    #[must_use]
    pub fn as_read(&self) -> DeviceSlice<'_, T> {
        DeviceSlice {
            region: self.region,
            start: self.start,
            len: self.len,
            elements: PhantomData,
        }
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of the first element.
    #[must_use]
    pub fn device_ptr(&self) -> DevicePtr {
        self.as_read().device_ptr()
    }

    /// A piece of it.
    ///
    /// # Panics
    /// When the range is outside.
    #[must_use]
    pub fn range(self, range: impl RangeBounds<usize>) -> Self {
        let range = resolve(range, self.len);
        Self {
            start: self.start + range.start,
            len: range.len(),
            ..self
        }
    }

    /// Two pieces, before and from element `at`.
    ///
    /// # Panics
    /// When `at` is outside.
    #[must_use]
    pub fn split_at(self, at: usize) -> (Self, Self) {
        let tail = resolve(at.., self.len);
        let second = Self {
            start: self.start + tail.start,
            len: tail.len(),
            ..self
        };
        let first = Self { len: at, ..self };
        (first, second)
    }

    /// Pieces of `len` elements each; the last may be shorter.
    ///
    /// # Panics
    /// When `len` is 0.
    pub fn chunks(self, len: usize) -> impl Iterator<Item = Self> {
        assert!(len > 0, "pieces of no elements");
        (0..self.len).step_by(len).map(move |start| Self {
            region: self.region,
            start: self.start + start,
            len: len.min(self.len - start),
            elements: PhantomData,
        })
    }

    /// The same memory as elements of another kind, which must fit it exactly.
    pub(crate) fn cast<U: Pod>(self) -> DeviceSliceMut<'a, U> {
        let (start, len) = cast::<T, U>(self.start, self.len);
        DeviceSliceMut {
            region: self.region,
            start,
            len,
            elements: PhantomData,
        }
    }

    pub(crate) fn touch(&self) -> Touch<'a> {
        Touch {
            region: self.region,
            extent: Extent::One(self.span().1),
            writes: true,
        }
    }

    /// Which bytes of which memory.
    pub(crate) fn span(&self) -> (&'a DeviceRegion, Range<usize>) {
        (self.region, span::<T>(self.start, self.len))
    }
}

impl<'a, T: Pod> From<&'a DeviceBuf<T>> for DeviceSlice<'a, T> {
    fn from(buffer: &'a DeviceBuf<T>) -> Self {
        buffer.whole()
    }
}

impl<'a, T: Pod> From<&'a mut DeviceBuf<T>> for DeviceSliceMut<'a, T> {
    fn from(buffer: &'a mut DeviceBuf<T>) -> Self {
        buffer.whole_mut()
    }
}

/// Where elements of `T` begin and how many they are, in elements of `U`.
fn cast<T, U>(start: usize, len: usize) -> (usize, usize) {
    let Range { start, end } = span::<T>(start, len);
    let bytes = size_of::<U>();
    let fits = bytes > 0 && start.is_multiple_of(bytes) && end.is_multiple_of(bytes);
    assert!(fits, "bytes {start} to {end} as elements of {bytes} bytes");
    (start / bytes, (end - start) / bytes)
}

fn span<T>(start: usize, len: usize) -> Range<usize> {
    start * size_of::<T>()..(start + len) * size_of::<T>()
}

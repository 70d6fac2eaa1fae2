//! Pinned memory, device memory and streams shared with the `cudarc` crate, without copying.
//!
//! ```text
//!   CudaSlice ── DeviceBuf::from_cudarc ──> DeviceBuf ── DeviceBuf::into_cudarc ──> CudaSlice
//!   CudaViewMut ── Device::with_cudarc ──> DeviceSliceMut, lent for the length of a closure
//!   Stream ── Stream::as_cudarc (unsafe) ──> CudaStream
//! ```
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use cudarc::driver::CudaContext;
//! use pinlane::Device;
//!
//! let device = Device::open(&pinlane_cuda::Cuda::load()?, 0)?;
//! let stream = device.stream()?;
//! let context = CudaContext::new(0)?;
//! let other = context.new_stream()?; // cudarc's
//!
//! // Fill cudarc's memory from pinned memory, asynchronously.
//! let mut weights = other.alloc_zeros::<f32>(1 << 20)?;
//! let pinned = device.pinned_from(&vec![1.5; 1 << 20])?;
//! let transfer = device.with_cudarc(weights.as_view_mut(), |target| {
//!     Ok(stream.upload(pinned, target)?)
//! })?;
//! let total = other.clone_dtoh(&weights)?; // waits for the copy
//! let pinned = transfer.wait()?; // the pinned buffer is ours again
//! # drop((total, pinned));
//! # Ok(())
//! # }
//! ```
//!
//! # Synchronization
//!
//! Pinlane's work waits for cudarc's pending work on the memory, and cudarc's later work waits for Pinlane's.
//! Both wait on the device, without blocking the host. cudarc records who uses a slice only once it has
//! created a stream of its own ([`CudaContext::new_stream`]) and while its tracking is on; otherwise the host
//! waits. It also records only the *last* reader: if several of its streams read a slice at once, join them
//! before handing it over, as for any later writer in cudarc itself.
//!
//! # Why pinned buffers do not implement `HostSlice`
//!
//! cudarc's copies take any [`HostSlice`](::cudarc::driver::HostSlice), borrow it for the length of the call,
//! and return while the copy is in flight. A guard that is dropped on return can synchronize the stream, and
//! would have to for pinned memory. But safe code can disable the guard: it does not wait if an earlier error
//! is stored in the context, and it cannot wait while the stream is captured, in which case the copy runs
//! whenever the graph is launched. Either way the buffer could be written or dropped during the copy.
//! Therefore Pinlane does the copies itself, on streams that safe code cannot capture, and owns the buffer.
//!
//! # Do not pass pinned memory to cudarc's own copies
//!
//! Safe code can still pass `&pinned[..]`, a slice of a pinned or registered buffer, to cudarc's copies, such as
//! [`CudaStream::memcpy_htod`] and [`CudaStream::memcpy_dtoh`]. cudarc assumes that every slice is pageable
//! memory, for which the driver waits by itself, and does not wait. For page-locked memory the driver does not
//! wait either: the call returns with the copy in flight, and the buffer can be written or freed during it.
//! This is unsound in cudarc 0.19, and it breaks the promise that a buffer in flight cannot be touched.
//! Pinlane cannot prevent it, since a pinned buffer is a slice. Copy with Pinlane instead, as above, or
//! synchronize cudarc's stream before the slice is used again and before the buffer is dropped, also where the
//! call failed: another buffer may get its memory at once.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::Arc;

use ::cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, CudaViewMut, DevicePtrMut, DriverError,
};
use bytemuck::Pod;
use pinlane_driver::{DevicePtr, ErrorKind, StreamHandle};

use super::{wait_for_all, wait_on_host};
use crate::device::Shared;
use crate::driver_handles::StreamRef;
use crate::fence::DeviceFence;
use crate::memory::{DeviceMemory, DeviceSliceMut, Owner};
use crate::transfer_protocol::Fence;
use crate::{Device, DeviceBuf, Error, Result, Stream, TransferError};

impl Stream {
    /// Wraps this stream for cudarc, to launch its kernels in stream order.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] unless `context` is the primary context of this stream's device.
    ///
    /// # Safety
    /// - This stream, or a clone of it, outlives the result and everything that holds it, such as slices
    ///   allocated on it.
    /// - It is not captured into a graph: transfers would appear done before they have begun.
    /// - The caller keeps Pinlane memory that is used through the result alive, and orders it with other
    ///   streams. The same holds for cudarc's memory until cudarc has created a stream of its own: only then
    ///   does it order its streams among each other.
    pub unsafe fn as_cudarc(&self, context: &Arc<CudaContext>) -> Result<Arc<CudaStream>> {
        same_device(self.shared(), context)?;
        let raw = ptr::with_exposed_provenance_mut(self.expose() as usize);
        // SAFETY: the handle is libcuda's and of this context, as `same_device` has checked; the caller
        // vouches for its lifetime and for the order of work.
        Ok(unsafe { context.wrap_borrowed_stream(raw) })
    }
}

impl<T: Pod> DeviceBuf<T> {
    /// Takes ownership of cudarc's device memory. Its uses wait for cudarc's pending work on it. When
    /// dropped, cudarc frees it once its last use is done.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] unless the slice is in the primary context of `device`; otherwise the
    /// driver's error, for example while cudarc's stream is being captured. The error returns the slice.
    pub fn from_cudarc(
        device: &Device,
        mut slice: CudaSlice<T>,
    ) -> Result<Self, TransferError<CudaSlice<T>>> {
        match enter(&device.shared, &mut slice) {
            Ok(entered) => {
                let len = slice.len();
                Ok(entered.into_buffer(&device.shared, len, Box::new(slice)))
            }
            Err(error) => Err(TransferError::new(error, slice)),
        }
    }

    /// Returns device memory to cudarc, whose later work waits for all uses of it so far.
    ///
    /// # Errors
    /// [`Error::NotFromCudarc`] for memory that cudarc did not allocate; the driver's error if cudarc
    /// cannot be made to wait. The error returns the buffer.
    #[allow(clippy::result_large_err)] // it returns the buffer
    pub fn into_cudarc(mut self) -> Result<CudaSlice<T>, TransferError<Self>> {
        let (shared, uses) = (Arc::clone(self.shared()), self.uses());
        let slice = self
            .owner_mut()
            .and_then(|owner| owner.downcast_mut::<CudaSlice<T>>());
        let left = match slice {
            Some(slice) => leave(&shared, slice, uses.as_deref()),
            None => Err(Error::NotFromCudarc),
        };
        match left {
            Ok(()) => {
                let owner = self.take_owner().expect("seen above");
                Ok(*owner.downcast().expect("seen above"))
            }
            Err(error) => Err(TransferError::new(error, self)),
        }
    }
}

impl Device {
    /// Lends cudarc's device memory to `work`. Work submitted by `work` waits for cudarc's pending work on
    /// the memory, and cudarc's later work waits for it.
    ///
    /// Transfers may be returned from `work`: they own host memory only.
    ///
    /// # Errors
    /// As for [`DeviceBuf::from_cudarc`] and [`DeviceBuf::into_cudarc`], and the error that `work` returns.
    pub fn with_cudarc<T: Pod, R>(
        &self,
        mut view: CudaViewMut<'_, T>,
        work: impl FnOnce(DeviceSliceMut<'_, T>) -> Result<R>,
    ) -> Result<R> {
        let shared = &self.shared;
        let entered = enter(shared, &mut view)?;
        let mut buffer = entered.into_buffer::<T>(shared, view.len(), Box::new(()));
        let outcome = catch_unwind(AssertUnwindSafe(|| work(buffer.whole_mut())));
        let left = leave_borrowed(shared, &mut view, buffer.uses().as_deref());
        // There is nothing to free, and nothing waits for it.
        buffer.take_owner();
        match (outcome, left) {
            (Ok(Ok(value)), Ok(())) => Ok(value),
            (Ok(Ok(_)), Err(error)) => Err(error),
            (failed, left) => {
                if let Err(error) = left {
                    shared.core.keep_stray_error(error);
                }
                failed.unwrap_or_else(|panic| resume_unwind(panic))
            }
        }
    }
}

/// cudarc's memory, usable behind the fence.
struct Entered {
    ptr: DevicePtr,
    bytes: usize,
    /// `None` if cudarc is done with it.
    fence: Option<DeviceFence>,
}

impl Entered {
    fn into_buffer<T: Pod>(self, shared: &Arc<Shared>, len: usize, owner: Owner) -> DeviceBuf<T> {
        let memory = DeviceMemory::foreign(&shared.core, self.ptr, self.bytes, owner);
        let mut buffer = DeviceBuf::new(shared, memory, len);
        if let Some(fence) = self.fence {
            buffer.used_by_owner_until(Shared::next_stream_id(), fence);
        }
        buffer
    }
}

/// Finds a fence behind all of cudarc's pending work on the memory.
fn enter<T>(shared: &Shared, memory: &mut impl DevicePtrMut<T>) -> Result<Entered> {
    let stream = Arc::clone(memory.stream());
    same_device(shared, stream.context())?;
    let ptr = gather(memory, &stream)?;
    let fence = if orders_its_streams(&stream) {
        let fence = shared.events.claim()?.record(live(shared, &stream))?;
        // An event in a stream that is being captured belongs to the graph. A stream of ours that waited
        // for it would be captured as well, with buffers that return to their owners long before the graph
        // is launched. Querying such an event is an error.
        fence.is_done()?;
        Some(fence)
    } else {
        shared.core.driver.synchronize()?;
        None
    };
    Ok(Entered {
        ptr,
        bytes: memory.num_bytes(),
        fence,
    })
}

/// Orders cudarc's later work behind our uses. `None` if some use cannot be waited for.
fn leave<T>(
    shared: &Shared,
    memory: &mut impl DevicePtrMut<T>,
    uses: Option<&[DeviceFence]>,
) -> Result<()> {
    let Some(uses) = uses else {
        return Ok(shared.core.driver.synchronize()?);
    };
    let stream = Arc::clone(memory.stream());
    if orders_its_streams(&stream) {
        wait_for_all(live(shared, &stream), uses)?;
        gather(memory, &stream)?;
    } else {
        for fence in uses {
            fence.wait()?;
        }
    }
    Ok(())
}

/// Like `leave`, for memory that returns to its borrower whatever happens.
fn leave_borrowed<T>(
    shared: &Shared,
    memory: &mut impl DevicePtrMut<T>,
    uses: Option<&[DeviceFence]>,
) -> Result<()> {
    let left = leave(shared, memory, uses);
    if let Err(error) = &left {
        wait_on_host(shared, uses, error);
    }
    left
}

/// Makes `stream` wait for the uses that cudarc has recorded, and makes cudarc record `stream`, as it is
/// now, as the last writer. Returns the memory's address.
fn gather<T>(memory: &mut impl DevicePtrMut<T>, stream: &CudaStream) -> Result<DevicePtr> {
    let (address, note) = memory.device_ptr_mut(stream);
    drop(note);
    // Neither call can return its error; the context stores it.
    stream.context().check_err().map_err(foreign)?;
    Ok(DevicePtr(address))
}

/// Whether cudarc records the uses of its slices, so that its streams wait for each other.
fn orders_its_streams(stream: &CudaStream) -> bool {
    // This handle is a different stream on every thread.
    const PER_THREAD: usize = 2;
    stream.cu_stream().addr() != PER_THREAD && stream.context().is_managing_stream_synchronization()
}

/// Checks that both use the same device. Pinlane and cudarc both use the primary context of a device, and
/// libcuda's own handles. The name distinguishes a simulated device, which has its own handles, from a CUDA
/// device with the same ordinal.
fn same_device(shared: &Shared, context: &CudaContext) -> Result<()> {
    let info = shared.core.driver.info();
    let same = context.is_primary()
        && context.ordinal() == info.ordinal as usize
        && context.name().map_err(foreign)? == info.name;
    same.then_some(()).ok_or(Error::WrongDevice)
}

fn live<'s>(shared: &'s Shared, stream: &'s CudaStream) -> StreamRef<'s> {
    let handle = stream.cu_stream().expose_provenance() as u64;
    // SAFETY: cudarc's stream on the same device, as `enter` checked; alive while it is borrowed.
    unsafe { StreamRef::new(&shared.core, StreamHandle::from_raw(handle)) }
}

/// Converts an error from cudarc, which does not say which call failed.
fn foreign(error: DriverError) -> Error {
    let code = error.0 as u32;
    pinlane_driver::Error::new(ErrorKind::Other { code }, "cudarc")
        .with_detail(error.to_string())
        .into()
}

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
//! // Fill memory of cudarc's from pinned memory, asynchronously.
//! let mut weights = other.alloc_zeros::<f32>(1 << 20)?;
//! let pinned = device.pinned_from(&vec![1.5; 1 << 20])?;
//! let transfer = device.with_cudarc(weights.as_view_mut(), |target| {
//!     Ok(stream.upload(pinned, target)?)
//! })?;
//! let total = other.clone_dtoh(&weights)?; // behind the copy: cudarc was told to wait
//! let pinned = transfer.wait()?; // the pinned buffer is ours again
//! # drop((total, pinned));
//! # Ok(())
//! # }
//! ```
//!
//! # Who waits for whom
//!
//! Work of Pinlane's waits for the work that cudarc has under way with the memory, and cudarc's
//! later work waits for Pinlane's, both on the device: the host goes on. cudarc notes who uses a
//! slice only once it has made a stream of its own ([`CudaContext::new_stream`]) and while its
//! tracking is on; without that the host waits. And it notes only the *last* reader: a slice that
//! several of its streams read at once is to be joined before it is handed over, as for any
//! later writer in cudarc itself.
//!
//! # Why pinned buffers are no `HostSlice`
//!
//! cudarc's copies take anything that is a [`HostSlice`](::cudarc::driver::HostSlice), borrow it
//! for the length of the call, and return while the copy is in flight. A guard, dropped as they
//! return, can synchronise the stream, and would have to for pinned memory. But safe code can make
//! the guard do nothing: it does not wait when an earlier error is stored in the context, and it
//! cannot wait while the stream is captured, in which case the copy runs whenever the graph is
//! launched. Either way the buffer is free to be written or dropped under the copy. So the copies
//! are Pinlane's, on streams that safe code cannot capture, and own the buffer as ever.
//!
//! For the same reason do not pass `&pinned[..]` to cudarc. It takes every slice for pageable
//! memory, for which the driver waits by itself, and does not wait.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::Arc;

use ::cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, CudaViewMut, DevicePtrMut, DriverError,
};
use bytemuck::Pod;
use pinlane_driver::{DevicePtr, ErrorKind, StreamHandle};

use crate::device::Shared;
use crate::fence::DeviceFence;
use crate::memory::{DeviceMemory, DeviceSliceMut, Owner};
use crate::protocol::Fence;
use crate::submit::{abort_over_borrowed, settle_borrowed};
use crate::{Device, DeviceBuf, Error, Result, Stream, TransferError};

impl Stream {
    /// The same stream for cudarc, to launch its kernels in the order of this one.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] unless `context` is the primary context of this stream's device.
    ///
    /// # Safety
    /// - This stream, or a clone of it, lives longer than the result and all that holds it, such as
    ///   slices that were allocated on it.
    /// - Nobody captures it into a graph: transfers would seem done before they have begun.
    /// - Memory of Pinlane's that is used through the result is kept, and ordered with other
    ///   streams, by the caller. cudarc's memory, too, until cudarc has made a stream of its own:
    ///   only then does it order its streams among each other.
    pub unsafe fn as_cudarc(&self, context: &Arc<CudaContext>) -> Result<Arc<CudaStream>> {
        same_device(self.shared(), context)?;
        let raw = ptr::with_exposed_provenance_mut(self.expose() as usize);
        // SAFETY: the handle is libcuda's, of this context, as `same_device` has checked; the
        // caller vouches for its life and for the order of work.
        Ok(unsafe { context.wrap_borrowed_stream(raw) })
    }
}

impl<T: Pod> DeviceBuf<T> {
    /// Takes device memory over from cudarc. It waits for what cudarc has under way with it, and is
    /// freed by cudarc when it is dropped and its last use is done.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] unless the slice is in the primary context of `device`; the driver's
    /// error otherwise, as when cudarc's stream is being captured. The slice comes back.
    pub fn from_cudarc(
        device: &Device,
        mut slice: CudaSlice<T>,
    ) -> std::result::Result<Self, TransferError<CudaSlice<T>>> {
        match enter(&device.shared, &mut slice) {
            Ok(entered) => {
                let len = slice.len();
                Ok(entered.into_buffer(&device.shared, len, Box::new(slice)))
            }
            Err(error) => Err(TransferError::new(error, slice)),
        }
    }

    /// Gives device memory back to cudarc, whose later work waits for all uses of it so far.
    ///
    /// # Errors
    /// [`Error::NotFromCudarc`] for memory that did not come from there; the driver's error where
    /// cudarc cannot be made to wait. The buffer comes back.
    #[allow(clippy::result_large_err)] // it holds the buffer, so that nothing is lost
    pub fn into_cudarc(mut self) -> std::result::Result<CudaSlice<T>, TransferError<Self>> {
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
    /// Lend device memory of cudarc's to `work`. What `work` submits waits for what cudarc has
    /// under way with the memory, and cudarc's later work waits for it.
    ///
    /// Transfers may be carried out of `work`: they own host memory only.
    ///
    /// # Errors
    /// As for [`DeviceBuf::from_cudarc`] and [`DeviceBuf::into_cudarc`], and what `work` returns.
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
        // Nothing to be freed, and nobody to wait for it.
        buffer.take_owner();
        match (outcome, left) {
            (Ok(Ok(value)), Ok(())) => Ok(value),
            (Ok(Ok(_)), Err(error)) => Err(error),
            (failed, left) => {
                if let Err(Error::Driver(error)) = left {
                    shared.core.keep_stray(error);
                }
                failed.unwrap_or_else(|panic| resume_unwind(panic))
            }
        }
    }
}

/// Memory of cudarc's that is ours to use behind the fence.
struct Entered {
    ptr: DevicePtr,
    bytes: usize,
    /// None where cudarc is done with it.
    fence: Option<DeviceFence>,
}

impl Entered {
    fn into_buffer<T: Pod>(self, shared: &Arc<Shared>, len: usize, owner: Owner) -> DeviceBuf<T> {
        let memory = DeviceMemory::foreign(&shared.core, self.ptr, self.bytes, owner);
        let mut buffer = DeviceBuf::new(shared, memory, len);
        if let Some(fence) = self.fence {
            buffer.used_by_owner_until(fence);
        }
        buffer
    }
}

/// Finds a fence behind all that cudarc has under way with the memory.
fn enter<T>(shared: &Shared, memory: &mut impl DevicePtrMut<T>) -> Result<Entered> {
    let stream = Arc::clone(memory.stream());
    same_device(shared, stream.context())?;
    let ptr = gather(memory, &stream)?;
    let fence = if orders_its_streams(&stream) {
        let fence = shared.events.claim()?.record(handle_of(&stream))?;
        // An event in a stream that is being captured belongs to the graph. A stream of ours that
        // waited for it would be captured as well, with buffers that go back to their owners long
        // before the graph is launched. Asking such an event is an error.
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

/// Puts later work of cudarc's behind our uses. `None` when nobody can tell where they end.
fn leave<T>(
    shared: &Shared,
    memory: &mut impl DevicePtrMut<T>,
    uses: Option<&[DeviceFence]>,
) -> Result<()> {
    let driver = &shared.core.driver;
    let Some(uses) = uses else {
        return Ok(driver.synchronize()?);
    };
    let stream = Arc::clone(memory.stream());
    if orders_its_streams(&stream) {
        for fence in uses.iter().filter(|fence| !fence.known_done()) {
            driver.stream_wait_event(handle_of(&stream), fence.event())?;
        }
        gather(memory, &stream)?;
    } else {
        for fence in uses {
            fence.wait()?;
        }
    }
    Ok(())
}

/// The same for memory that goes back to its borrower whatever happens: if cudarc cannot be made
/// to wait, the host does.
fn leave_borrowed<T>(
    shared: &Shared,
    memory: &mut impl DevicePtrMut<T>,
    uses: Option<&[DeviceFence]>,
) -> Result<()> {
    let left = leave(shared, memory, uses);
    match (&left, uses) {
        (Ok(()), _) => {}
        // A dead device uses nothing.
        (Err(Error::Driver(error)), _) if error.is_fatal() => {}
        (Err(_), Some(uses)) => {
            for error in uses.iter().filter_map(|fence| settle_borrowed(fence).err()) {
                shared.core.keep_stray(error);
            }
        }
        (Err(error), None) => abort_over_borrowed(error),
    }
    left
}

/// Lets `stream` wait for what cudarc has noted of the memory, and let cudarc note `stream`, as it
/// is now, as the last writer. The memory's address.
fn gather<T>(memory: &mut impl DevicePtrMut<T>, stream: &CudaStream) -> Result<DevicePtr> {
    let (address, note) = memory.device_ptr_mut(stream);
    drop(note);
    // Neither of the two can return its error: it is left here.
    stream.context().check_err().map_err(foreign)?;
    Ok(DevicePtr(address))
}

/// Whether cudarc notes the uses of its slices, for its streams to wait for each other.
fn orders_its_streams(stream: &CudaStream) -> bool {
    // This handle is another stream on every thread.
    const PER_THREAD: usize = 2;
    stream.cu_stream().addr() != PER_THREAD && stream.context().is_managing_stream_synchronization()
}

/// Pinlane and cudarc both use the primary context of a device, and libcuda's own handles. The
/// name tells a simulated device, whose handles are its own, from libcuda's of the same number.
fn same_device(shared: &Shared, context: &CudaContext) -> Result<()> {
    let info = shared.core.driver.info();
    let same = context.is_primary()
        && context.ordinal() == info.ordinal as usize
        && context.name().map_err(foreign)? == info.name;
    same.then_some(()).ok_or(Error::WrongDevice)
}

fn handle_of(stream: &CudaStream) -> StreamHandle {
    // SAFETY: cudarc's stream of the same device, which is alive while it is borrowed.
    unsafe { StreamHandle::from_raw(stream.cu_stream().expose_provenance() as u64) }
}

/// An error that cudarc had, which does not say in which call.
fn foreign(error: DriverError) -> Error {
    let code = error.0 as u32;
    pinlane_driver::Error::new(ErrorKind::Other { code }, "cudarc")
        .with_detail(error.to_string())
        .into()
}

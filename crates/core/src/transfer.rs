//! Transfers: copies in flight that own their host memory.

use std::fmt;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};
use std::time::Duration;

use bytemuck::Pod;
use pinlane_driver::{CopyOp, HostPtr, Place};

use crate::fence::DeviceFence;
use crate::memory::{DeviceSlice, DeviceSliceMut, PinnedSource, PinnedTarget};
use crate::protocol::{InFlight, Landed};
use crate::stream::SubmitError;
use crate::sync::Arc as CoreArc;
use crate::{Error, Result, Stopwatch, Stream, TransferError};

/// A copy in flight that owns its host buffer.
///
/// [`wait`](Self::wait), or awaiting it in any async runtime, returns the buffer once the copy is done. A
/// transfer dropped earlier parks the buffer with the device, which frees it when the copy is done; a
/// leaked transfer leaks it. Either way, no code can touch memory that the device still uses.
#[must_use = "a transfer gives its buffer back through `wait` or `.await`"]
pub struct Transfer<B: Send + 'static> {
    flight: InFlight<B, DeviceFence>,
    stream: Stream,
}

impl Stream {
    /// Copies pinned memory to the device, asynchronously. The transfer owns the buffer until it is done.
    ///
    /// A failed upload returns the buffer in [`TransferError::buffer`]. **`?` drops it:** the conversion to
    /// [`Error`] keeps only the reason. Match on the error to keep the buffer:
    ///
    /// ```
    /// # fn main() -> pinlane::Result<()> {
    /// # let device = pinlane::Device::sim("pcie3-x16")?;
    /// # let stream = device.stream()?;
    /// let mut too_small = device.alloc::<u8>(10)?;
    /// let buffer = device.pinned_from(&[1u8; 100])?;
    /// let buffer = match stream.upload(buffer, &mut too_small) {
    ///     Ok(transfer) => transfer.wait()?,
    ///     Err(failed) => failed.buffer.expect("nothing was in flight"),
    /// };
    /// assert_eq!(buffer.len(), 100);
    /// # Ok(())
    /// # }
    /// ```
    pub fn upload<'a, T: Pod, B: PinnedSource<T>>(
        &self,
        source: B,
        target: impl Into<DeviceSliceMut<'a, T>>,
    ) -> std::result::Result<Transfer<B>, TransferError<B>> {
        self.upload_timed(source, target.into(), None)
    }

    pub(crate) fn upload_timed<T: Pod, B: PinnedSource<T>>(
        &self,
        source: B,
        target: DeviceSliceMut<'_, T>,
        stopwatch: Option<&Stopwatch>,
    ) -> std::result::Result<Transfer<B>, TransferError<B>> {
        let checked = same_len(source.len(), target.len())
            .and_then(|()| source.pinned_for().check_usable_by(&self.shared().core));
        if let Err(error) = checked {
            return Err(TransferError::new(error, source));
        }
        let copy = CopyOp {
            source: Place::Host(host_ptr(source.start())),
            target: Place::Device(target.device_ptr()),
            bytes: source.len() * size_of::<T>(),
        };
        let source = ManuallyDrop::new(source); // leaked if the driver panics
        let mut marked = Ok(());
        let submitted = self.submit(&[target.touch()], |driver, stream| {
            // SAFETY: both sides hold that many bytes; the transfer owns the source until the fence behind
            // the copy has fired, and the target's ledger keeps the target.
            let enqueue = || unsafe { copy_unless_empty(driver, copy, stream) };
            match stopwatch {
                None => enqueue()?,
                Some(stopwatch) => marked = stopwatch.around(driver, stream, enqueue)?,
            }
            Ok(())
        });
        let transfer = self.in_flight(submitted, ManuallyDrop::into_inner(source))?;
        transfer.marked(marked)
    }

    /// Copies device memory into pinned memory, asynchronously. The transfer owns the buffer until it is
    /// done. As for [`upload`](Self::upload), `?` on a failed download drops the buffer;
    /// [`TransferError::buffer`] has it.
    pub fn download<'a, T: Pod, B: PinnedTarget<T>>(
        &self,
        source: impl Into<DeviceSlice<'a, T>>,
        target: B,
    ) -> std::result::Result<Transfer<B>, TransferError<B>> {
        self.download_timed(source.into(), target, None)
    }

    pub(crate) fn download_timed<T: Pod, B: PinnedTarget<T>>(
        &self,
        source: DeviceSlice<'_, T>,
        mut target: B,
        stopwatch: Option<&Stopwatch>,
    ) -> std::result::Result<Transfer<B>, TransferError<B>> {
        let checked = same_len(source.len(), target.len())
            .and_then(|()| target.pinned_for().check_usable_by(&self.shared().core));
        if let Err(error) = checked {
            return Err(TransferError::new(error, target));
        }
        let copy = CopyOp {
            source: Place::Device(source.device_ptr()),
            target: Place::Host(host_ptr(target.start_mut())),
            bytes: source.len() * size_of::<T>(),
        };
        let target = ManuallyDrop::new(target); // leaked if the driver panics
        let mut marked = Ok(());
        let submitted = self.submit(&[source.touch()], |driver, stream| {
            // SAFETY: as in `upload`, with source and target swapped.
            let enqueue = || unsafe { copy_unless_empty(driver, copy, stream) };
            match stopwatch {
                None => enqueue()?,
                Some(stopwatch) => marked = stopwatch.around(driver, stream, enqueue)?,
            }
            Ok(())
        });
        let transfer = self.in_flight(submitted, ManuallyDrop::into_inner(target))?;
        transfer.marked(marked)
    }

    /// Keeps `buffer` until all work submitted so far is done, for kernels that use mapped memory.
    pub fn hold<T: Pod, B: PinnedSource<T>>(
        &self,
        buffer: B,
    ) -> std::result::Result<Transfer<B>, TransferError<B>> {
        let buffer = ManuallyDrop::new(buffer); // leaked if the driver panics
        let submitted = self.submit(&[], |_, _| Ok(()));
        self.in_flight(submitted, ManuallyDrop::into_inner(buffer))
    }

    pub(crate) fn in_flight<B: Send + 'static>(
        &self,
        submitted: std::result::Result<DeviceFence, SubmitError>,
        buffer: B,
    ) -> std::result::Result<Transfer<B>, TransferError<B>> {
        match submitted {
            Ok(fence) => Ok(Transfer {
                flight: InFlight::new(buffer, fence, CoreArc::clone(&self.shared().deferred)),
                stream: self.clone(),
            }),
            Err(SubmitError::Refused(error)) => Err(TransferError::new(error, buffer)),
            Err(SubmitError::Stranded(error)) => {
                // The device may write to it for the rest of the process.
                std::mem::forget(buffer);
                Err(TransferError {
                    error,
                    buffer: None,
                })
            }
        }
    }
}

impl<B: Send + 'static> Transfer<B> {
    /// Handles a copy that was submitted but whose fence may be missing. Without a fence, waits for the
    /// copy and returns the buffer with the error.
    fn marked(
        self,
        marked: pinlane_driver::Result<()>,
    ) -> std::result::Result<Self, TransferError<B>> {
        match marked {
            Ok(()) => Ok(self),
            Err(error) => {
                let buffer = self.wait()?;
                Err(TransferError::new(error, buffer))
            }
        }
    }

    /// Waits until the copy is done and returns the buffer, on failure too.
    pub fn wait(mut self) -> std::result::Result<B, TransferError<B>> {
        finish(self.flight.land())
    }

    /// Whether the copy is done.
    pub fn is_done(&self) -> Result<bool> {
        Ok(self.flight.is_done()?)
    }

    /// Waits until the copy is done or `timeout` has passed. Returns whether it is done.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<bool> {
        Ok(self.flight.wait_timeout(timeout)?)
    }
}

/// The buffer is moved out at the end, so it is never pinned in place.
impl<B: Send + 'static> Unpin for Transfer<B> {}

impl<B: Send + 'static> Future for Transfer<B> {
    type Output = std::result::Result<B, TransferError<B>>;

    /// # Panics
    /// If polled again after it returned `Ready`.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let stream = &this.stream;
        this.flight
            .poll(context, |fence, told| {
                stream.shared().notify_when(fence, told)
            })
            .map(finish)
    }
}

impl<B: Send + 'static> fmt::Debug for Transfer<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transfer")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

fn finish<B>(landed: Landed<B>) -> std::result::Result<B, TransferError<B>> {
    match landed {
        Landed {
            result: Ok(()),
            buffer: Some(buffer),
        } => Ok(buffer),
        Landed { result, buffer } => Err(TransferError {
            error: result.expect_err("a lost buffer has a reason").into(),
            buffer,
        }),
    }
}

pub(crate) fn same_len(source_len: usize, target_len: usize) -> Result<()> {
    if source_len == target_len {
        Ok(())
    } else {
        Err(Error::LengthMismatch {
            source_len,
            target_len,
        })
    }
}

pub(crate) fn host_ptr<T>(start: *const T) -> HostPtr {
    NonNull::new(start.cast_mut().cast()).expect("host memory is never at 0")
}

/// # Safety
/// As for [`Driver::copy_async`](pinlane_driver::Driver::copy_async).
pub(crate) unsafe fn copy_unless_empty(
    driver: &dyn pinlane_driver::Driver,
    copy: CopyOp,
    stream: pinlane_driver::StreamHandle,
) -> pinlane_driver::Result<()> {
    if copy.bytes == 0 {
        return Ok(());
    }
    // SAFETY: the caller upholds the same contract.
    unsafe { driver.copy_async(copy, stream) }
}

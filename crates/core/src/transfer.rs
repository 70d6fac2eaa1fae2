//! Transfers: copies in flight that own their host memory.

use std::fmt;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytemuck::Pod;
use pinlane_driver::{CopyOp, DevicePtr, Driver};

use crate::driver_copy::{Direction, enqueue, same_len};
use crate::fence::DeviceFence;
use crate::memory::{DeviceSlice, DeviceSliceMut, PinnedSource, PinnedTarget, Touch};
use crate::stream::SubmitError;
use crate::sync::Arc as CoreArc;
use crate::transfer_protocol::{InFlight, Landed};
use crate::{Result, Stopwatch, Stream, Timed, TransferError};

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
    /// [`Error`](crate::Error) keeps only the reason. Match on the error to keep the buffer:
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
    ) -> Result<Transfer<B>, TransferError<B>> {
        self.upload_timed(source, target.into(), None)
    }

    pub(crate) fn upload_timed<T: Pod, B: PinnedSource<T>>(
        &self,
        source: B,
        target: DeviceSliceMut<'_, T>,
        stopwatch: Option<&Stopwatch>,
    ) -> Result<Transfer<B>, TransferError<B>> {
        let lens = (source.len(), target.len());
        let bytes = source.len() * size_of::<T>();
        let copy = Direction::Upload.copy(source.start(), target.device_ptr(), bytes);
        // SAFETY: the copy is between the two.
        unsafe { self.transfer(source, copy, lens, target.touch(), stopwatch) }
    }

    /// Copies device memory into pinned memory, asynchronously. The transfer owns the buffer until it is
    /// done. As for [`upload`](Self::upload), `?` on a failed download drops the buffer;
    /// [`TransferError::buffer`] has it.
    pub fn download<'a, T: Pod, B: PinnedTarget<T>>(
        &self,
        source: impl Into<DeviceSlice<'a, T>>,
        target: B,
    ) -> Result<Transfer<B>, TransferError<B>> {
        self.download_timed(source.into(), target, None)
    }

    pub(crate) fn download_timed<T: Pod, B: PinnedTarget<T>>(
        &self,
        source: DeviceSlice<'_, T>,
        mut target: B,
        stopwatch: Option<&Stopwatch>,
    ) -> Result<Transfer<B>, TransferError<B>> {
        let lens = (source.len(), target.len());
        let bytes = source.len() * size_of::<T>();
        let copy = Direction::Download.copy(target.start_mut(), source.device_ptr(), bytes);
        // SAFETY: the copy is between the two.
        unsafe { self.transfer(target, copy, lens, source.touch(), stopwatch) }
    }

    /// # Safety
    /// `copy` is between `buffer` and the memory of `touch`, which hold as many bytes if the lengths of
    /// source and target are equal.
    unsafe fn transfer<T: Pod, B: PinnedSource<T>>(
        &self,
        buffer: B,
        copy: CopyOp,
        (source_len, target_len): (usize, usize),
        touch: Touch<'_>,
        stopwatch: Option<&Stopwatch>,
    ) -> Result<Transfer<B>, TransferError<B>> {
        let core = &self.shared().core;
        let checked = stopwatch
            .map_or(Ok(()), |stopwatch| stopwatch.belongs_to(core))
            .and_then(|()| same_len(source_len, target_len))
            .and_then(|()| buffer.pinned_for().check_usable_by(core));
        if let Err(error) = checked {
            return Err(TransferError::new(error, buffer));
        }
        let mut marked = Ok(());
        let enqueue = |driver: &dyn Driver, stream| {
            // SAFETY: both sides hold that many bytes; the transfer owns the buffer until the fence behind
            // the copy has fired, and the ledger keeps the device memory.
            let enqueue = || unsafe { enqueue(copy)(driver, stream) };
            match stopwatch {
                None => enqueue()?,
                Some(stopwatch) => marked = stopwatch.around(self.live(), enqueue)?,
            }
            Ok(())
        };
        let transfer = self.in_flight(buffer, |_| self.submit(&[touch], enqueue))?;
        match marked {
            Ok(()) => Ok(transfer),
            // The copy is submitted, but not timed.
            Err(error) => Err(TransferError::new(error, transfer.wait()?)),
        }
    }

    /// Copies ranges of a pinned buffer to the device, asynchronously. The transfer owns the buffer until
    /// all copies are done. An error comes with the index of the piece it concerns.
    ///
    /// # Panics
    /// If a range is out of bounds, or differs in length from its target.
    #[doc(hidden)]
    pub fn upload_pieces<B: PinnedSource<u8>>(
        &self,
        source: B,
        pieces: &[(Range<usize>, DeviceSliceMut<'_, u8>)],
    ) -> Result<Transfer<B>, (TransferError<B>, usize)> {
        let place = |(range, target): &(Range<usize>, DeviceSliceMut<'_, u8>)| {
            assert_eq!(range.len(), target.len(), "{range:?}");
            (range.clone(), target.device_ptr())
        };
        let places: Vec<_> = pieces.iter().map(place).collect();
        let touches: Vec<_> = pieces.iter().map(|(_, target)| target.touch()).collect();
        // SAFETY: each target has the length of its range, and its ledger keeps it.
        unsafe { self.upload_ranges(source, &places, &touches) }
    }

    /// Like [`upload_pieces`](Self::upload_pieces), to addresses.
    ///
    /// # Safety
    /// Each address has device memory of this device for its range. It stays valid, and unused by others, until
    /// the copies are done: the ledgers of `touches` see to it, or the caller.
    ///
    /// # Panics
    /// If a range is out of bounds.
    #[doc(hidden)]
    pub unsafe fn upload_ranges<B: PinnedSource<u8>>(
        &self,
        source: B,
        places: &[(Range<usize>, DevicePtr)],
        touches: &[Touch<'_>],
    ) -> Result<Transfer<B>, (TransferError<B>, usize)> {
        if let Err(error) = source.pinned_for().check_usable_by(&self.shared().core) {
            return Err((TransferError::new(error, source), 0));
        }
        let (start, len) = (source.start(), source.len());
        for (range, _) in places {
            let inside = range.start <= range.end && range.end <= len;
            assert!(inside, "{range:?}");
        }
        let mut failed = None;
        let enqueue_all = |driver: &dyn Driver, stream| {
            for (number, (range, target)) in places.iter().enumerate() {
                // SAFETY: the range was checked to be inside the buffer.
                let first = unsafe { start.add(range.start) };
                let copy = Direction::Upload.copy(first, *target, range.len());
                // SAFETY: both sides hold that many bytes; the transfer owns the source until the fence
                // behind all copies has fired; the target is the caller's promise.
                if let Err(error) = unsafe { enqueue(copy)(driver, stream) } {
                    failed = Some((error.clone(), number));
                    // Earlier copies are in flight, so the fence is still needed.
                    return if number == 0 { Err(error) } else { Ok(()) };
                }
            }
            Ok(())
        };
        let transfer = self.in_flight(source, |_| self.submit(touches, enqueue_all));
        match (transfer, failed) {
            (Ok(transfer), None) => Ok(transfer),
            (Ok(transfer), Some((error, number))) => {
                let failure = match transfer.wait() {
                    Ok(source) => TransferError::new(error, source),
                    Err(failure) => {
                        self.shared().core.keep_stray_error(failure.error);
                        let buffer = failure.buffer;
                        let error = error.into();
                        TransferError { error, buffer }
                    }
                };
                Err((failure, number))
            }
            (Err(failure), failed) => Err((failure, failed.map_or(0, |(_, number)| number))),
        }
    }

    /// Keeps `buffer` until all work submitted so far is done, for kernels that use mapped memory.
    pub fn hold<T: Pod, B: PinnedSource<T>>(
        &self,
        buffer: B,
    ) -> Result<Transfer<B>, TransferError<B>> {
        self.in_flight(buffer, |_| self.submit(&[], |_, _| Ok(())))
    }

    /// Submits work that uses `buffer`, which is leaked if the driver panics.
    pub(crate) fn in_flight<B: Send + 'static>(
        &self,
        buffer: B,
        submit: impl FnOnce(&B) -> Result<DeviceFence, SubmitError>,
    ) -> Result<Transfer<B>, TransferError<B>> {
        let buffer = ManuallyDrop::new(buffer);
        let submitted = submit(&buffer);
        let buffer = ManuallyDrop::into_inner(buffer);
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

impl Timed<'_> {
    /// Like [`Stream::upload`], timed.
    pub fn upload<'a, T: Pod, B: PinnedSource<T>>(
        &self,
        source: B,
        target: impl Into<DeviceSliceMut<'a, T>>,
    ) -> Result<Transfer<B>, TransferError<B>> {
        self.stream
            .upload_timed(source, target.into(), Some(self.stopwatch))
    }

    /// Like [`Stream::download`], timed.
    pub fn download<'a, T: Pod, B: PinnedTarget<T>>(
        &self,
        source: impl Into<DeviceSlice<'a, T>>,
        target: B,
    ) -> Result<Transfer<B>, TransferError<B>> {
        self.stream
            .download_timed(source.into(), target, Some(self.stopwatch))
    }
}

impl<B: Send + 'static> Transfer<B> {
    /// Waits until the copy is done and returns the buffer, on failure too.
    ///
    /// # Panics
    /// If the transfer was polled before and returned `Ready`: the buffer is gone.
    pub fn wait(mut self) -> Result<B, TransferError<B>> {
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
    type Output = Result<B, TransferError<B>>;

    /// # Panics
    /// If polled again after it returned `Ready`.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let notifier = &this.stream.shared().notifier;
        let landed = this
            .flight
            .poll(context, |fence, told| notifier.tell(fence, told));
        landed.map(finish)
    }
}

impl<B: Send + 'static> fmt::Debug for Transfer<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transfer")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

fn finish<B>(landed: Landed<B>) -> Result<B, TransferError<B>> {
    landed.map_err(|(error, buffer)| TransferError {
        error: error.into(),
        buffer,
    })
}

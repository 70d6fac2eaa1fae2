//! How work gets onto a stream: waits before it, a fence behind it, an entry in the books.

use pinlane_driver::{Driver, StreamHandle};

use crate::fence::{DeviceFence, UnrecordedFence};
use crate::memory::Touch;
use crate::protocol::Fence;
use crate::stream::{SubmitError, SubmitGuard};
use crate::{Error, Stream};

impl Stream {
    /// Submit what `enqueue` does, ordered behind every earlier use of what it touches.
    pub(crate) fn submit(
        &self,
        touches: &[Touch<'_>],
        enqueue: impl FnOnce(&dyn Driver, StreamHandle) -> pinlane_driver::Result<()>,
    ) -> Result<DeviceFence, SubmitError> {
        self.submit_and_enter(touches, enqueue, |_| ())
    }

    /// The same, with an entry into books beside those of the touches.
    ///
    /// A touch that writes stems from an exclusive borrow, so nobody can submit a clashing use of
    /// the same range between the waits and the entry. Several threads may read the same range on
    /// this stream: the submit order makes the order of the entries that of the fences.
    pub(crate) fn submit_and_enter(
        &self,
        touches: &[Touch<'_>],
        enqueue: impl FnOnce(&dyn Driver, StreamHandle) -> pinlane_driver::Result<()>,
        enter: impl FnOnce(&DeviceFence),
    ) -> Result<DeviceFence, SubmitError> {
        self.admit(touches)?;
        let fence = self.shared().events.claim().map_err(refused)?;
        let _guard = self.begin_submit();
        let _order = self.submit_order();
        self.wait_for_all_conflicts(touches)?;
        let unmarked = StrandMemoryOnUnwind(touches);
        let enqueued = enqueue(self.driver(), self.handle());
        std::mem::forget(unmarked);
        enqueued.map_err(refused)?;
        let fence = self.mark(touches, fence)?;
        enter(&fence);
        Ok(fence)
    }

    /// Submit and wait for the whole stream, which spares the fence and the entry. Nothing uses the
    /// memory any more when this returns, unless it is stranded.
    pub(crate) fn submit_and_drain(
        &self,
        touches: &[Touch<'_>],
        enqueue: impl FnOnce(&dyn Driver, StreamHandle) -> pinlane_driver::Result<()>,
    ) -> Result<(), SubmitError> {
        self.admit(touches)?;
        let begin_submit = self.begin_submit();
        // There is no entry whose order would matter: no lock is needed.
        self.wait_for_all_conflicts(touches)?;
        let unmarked = StrandMemoryOnUnwind(touches);
        let enqueued = enqueue(self.driver(), self.handle());
        drop(begin_submit);
        let drained = enqueued.map(|()| self.drain());
        std::mem::forget(unmarked);
        drained
            .map_err(refused)?
            .map_err(|error| self.submitted_without_fence(touches, error))
    }

    /// Whether the memory and the stream may be used.
    fn admit(&self, touches: &[Touch<'_>]) -> Result<(), SubmitError> {
        let shared = self.shared();
        shared.deferred.reclaim();
        for touch in touches {
            touch
                .region
                .may_be_used_by(shared)
                .map_err(SubmitError::Refused)?;
        }
        self.refuse_capture().map_err(SubmitError::Refused)
    }

    /// Lets the stream wait for what work on this memory would wait for.
    #[doc(hidden)]
    pub fn wait_for_uses(&self, touches: &[Touch<'_>]) -> Result<(), Error> {
        self.admit(touches)?;
        let _guard = self.begin_submit();
        Ok(self.wait_for_all_conflicts(touches)?)
    }

    fn wait_for_all_conflicts(&self, touches: &[Touch<'_>]) -> Result<(), SubmitError> {
        for touch in touches {
            self.wait_for_conflicts(touch).map_err(refused)?;
        }
        Ok(())
    }

    /// Puts the fence behind the work and into the books.
    fn mark(
        &self,
        touches: &[Touch<'_>],
        fence: UnrecordedFence,
    ) -> Result<DeviceFence, SubmitError> {
        // Should the driver panic, nobody can tell any more what uses the memory.
        let unmarked = StrandMemoryOnUnwind(touches);
        let recorded = fence.record(self.handle());
        std::mem::forget(unmarked);
        let fence = match recorded {
            Ok(fence) => fence,
            Err(error) => return Err(self.submitted_without_fence(touches, error)),
        };
        for touch in touches {
            let access = touch.access(self.id());
            touch.region.ledger().record(access, fence.clone());
        }
        Ok(fence)
    }

    /// Begin work that is submitted piece by piece, perhaps by several threads. The memory it
    /// touches is borrowed until [`Submission::finish`], so nobody can submit a clashing use
    /// meanwhile; the order is locked at the end only, for the entry, and others may use the stream
    /// before.
    pub(crate) fn begin<'a>(
        &'a self,
        touches: &'a [Touch<'a>],
    ) -> Result<Submission<'a>, SubmitError> {
        self.admit(touches)?;
        let fence = self.shared().events.claim().map_err(refused)?;
        let begin_submit = self.begin_submit();
        self.wait_for_all_conflicts(touches)?;
        Ok(Submission {
            stream: self,
            touches,
            fence: Some(fence),
            _guard: begin_submit,
        })
    }

    fn wait_for_conflicts(&self, touch: &Touch<'_>) -> pinlane_driver::Result<()> {
        let access = touch.access(self.id());
        for fence in touch.region.ledger().conflicts(&access) {
            if !fence.known_done() {
                self.driver()
                    .stream_wait_event(self.handle(), fence.event())?;
            }
        }
        Ok(())
    }

    /// Whether work on this memory would have to wait for other streams.
    pub(crate) fn would_wait(&self, touch: &Touch<'_>) -> bool {
        let access = touch.access(self.id());
        let ledger = touch.region.ledger();
        ledger.conflicts(&access).any(|fence| !fence.has_let_go())
    }

    /// The work is on its way, but its end cannot be marked: wait for it here.
    fn submitted_without_fence(
        &self,
        touches: &[Touch<'_>],
        error: pinlane_driver::Error,
    ) -> SubmitError {
        if error.is_fatal() || self.drains() {
            return SubmitError::Refused(error.into());
        }
        for touch in touches {
            touch.region.strand();
        }
        SubmitError::Stranded(error.into())
    }

    /// Wait for all work of the stream without an event. Whether the device has certainly let go of
    /// it: done, or dead.
    pub(crate) fn drains(&self) -> bool {
        self.shared().core.drains(self.handle())
    }

    /// Submit and wait, for memory that is only borrowed: where nobody can tell whether the device
    /// has let go of it, the process ends, since going on would be unsound.
    pub(crate) fn submit_borrowed_and_drain(
        &self,
        touches: &[Touch<'_>],
        enqueue: impl FnOnce(&dyn Driver, StreamHandle) -> pinlane_driver::Result<()>,
    ) -> Result<(), Error> {
        or_abort(|| self.submit_and_drain(touches, enqueue))
    }

    /// Submit work on borrowed memory. Should the driver panic with the work under way, the
    /// process ends: nobody would wait for it.
    pub(crate) fn submit_borrowed(
        &self,
        touches: &[Touch<'_>],
        enqueue: impl FnOnce(&dyn Driver, StreamHandle) -> pinlane_driver::Result<()>,
    ) -> Result<DeviceFence, Error> {
        or_abort(|| self.submit(touches, enqueue))
    }
}

/// Work under way on a stream, see [`Stream::begin`].
pub(crate) struct Submission<'a> {
    stream: &'a Stream,
    touches: &'a [Touch<'a>],
    /// Taken out by `finish`.
    fence: Option<UnrecordedFence>,
    _guard: SubmitGuard<'a>,
}

impl Submission<'_> {
    /// Mark the end of the work, whether all of it could be submitted or not.
    pub(crate) fn finish(mut self) -> Result<DeviceFence, SubmitError> {
        let fence = self.fence.take().expect("finished once");
        let _order = self.stream.submit_order();
        self.stream.mark(self.touches, fence)
    }
}

impl Drop for Submission<'_> {
    /// Not finished: a panic came between. Nobody can tell any more what uses the memory.
    fn drop(&mut self) {
        if self.fence.is_some() {
            drop(StrandMemoryOnUnwind(self.touches));
        }
    }
}

fn refused(error: pinlane_driver::Error) -> SubmitError {
    SubmitError::Refused(error.into())
}

/// Submits what uses borrowed memory.
fn or_abort<T>(submit: impl FnOnce() -> Result<T, SubmitError>) -> Result<T, Error> {
    let guard = AbortOnUnwind;
    let submitted = submit();
    std::mem::forget(guard);
    match submitted {
        Ok(value) => Ok(value),
        Err(SubmitError::Refused(error)) => Err(error),
        Err(SubmitError::Stranded(error)) => abort_over_borrowed(&error),
    }
}

/// Gives memory up when it is dropped, which only a panic does.
struct StrandMemoryOnUnwind<'a>(&'a [Touch<'a>]);

impl Drop for StrandMemoryOnUnwind<'_> {
    fn drop(&mut self) {
        for touch in self.0 {
            touch.region.strand();
        }
    }
}

/// Ends the process when it is dropped, which only a panic does.
pub(crate) struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        // Not through `log`: the reason must be seen with or without a logger.
        eprintln!(
            "pinlane: the driver panicked while it copied borrowed memory; ending the process"
        );
        std::process::abort();
    }
}

/// Wait until the device has let go of borrowed memory.
pub(crate) fn settle_borrowed(fence: &DeviceFence) -> pinlane_driver::Result<()> {
    use crate::protocol::Settled;
    match fence.settle() {
        Settled::Done(result) => result,
        Settled::Unknown(error) => abort_over_borrowed(&error.into()),
    }
}

/// Borrowed memory goes back to its owner when this returns, so it must not return.
pub(crate) fn abort_over_borrowed(error: &Error) -> ! {
    // As above.
    eprintln!(
        "pinlane: the driver cannot tell whether a copy of borrowed memory is done ({error}); \
         ending the process, since going on could corrupt memory"
    );
    std::process::abort()
}

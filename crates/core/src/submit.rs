//! Submits work to a stream: waits before it, a fence behind it, an entry in the ledger.

use pinlane_driver::{Driver, StreamHandle};

use crate::fence::{DeviceFence, UnrecordedFence};
use crate::logging;
use crate::memory::Touch;
use crate::stream::{SubmitError, SubmitGuard};
use crate::transfer_protocol::Fence;
use crate::unwind::on_unwind;
use crate::{Error, Stream};

impl Stream {
    /// Submits the work of `enqueue`, ordered behind every earlier use of the memory it touches.
    pub(crate) fn submit(
        &self,
        touches: &[Touch<'_>],
        enqueue: impl FnOnce(&dyn Driver, StreamHandle) -> pinlane_driver::Result<()>,
    ) -> Result<DeviceFence, SubmitError> {
        self.submit_and_enter(touches, enqueue, |_| ())
    }

    /// Like [`submit`](Self::submit), and passes the fence to `enter` for ledgers other than those of the
    /// touched memory.
    ///
    /// A touch that writes comes from an exclusive borrow, so no conflicting use of the same range can be
    /// submitted between the waits and the entry. Several threads may read the same range on this stream:
    /// the submit order keeps ledger entries in the order of their fences.
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
        self.wait_for_conflicts(touches)?;
        let enqueue = || enqueue(self.driver(), self.handle());
        on_unwind(|| strand(touches), enqueue).map_err(refused)?;
        let fence = self.mark(touches, fence)?;
        enter(&fence);
        Ok(fence)
    }

    /// Submits and waits for the whole stream, which saves the fence and the ledger entry. When this
    /// returns, nothing uses the memory, unless it is stranded.
    pub(crate) fn submit_and_drain(
        &self,
        touches: &[Touch<'_>],
        enqueue: impl FnOnce(&dyn Driver, StreamHandle) -> pinlane_driver::Result<()>,
    ) -> Result<(), SubmitError> {
        self.admit(touches)?;
        let begin_submit = self.begin_submit();
        // There is no ledger entry to keep in order, so no lock is needed.
        self.wait_for_conflicts(touches)?;
        let enqueue_and_drain = || {
            let enqueued = enqueue(self.driver(), self.handle());
            drop(begin_submit);
            enqueued.map(|()| self.drain())
        };
        on_unwind(|| strand(touches), enqueue_and_drain)
            .map_err(refused)?
            .map_err(|error| self.submitted_without_fence(touches, error))
    }

    /// Checks that the memory and the stream may be used.
    fn admit(&self, touches: &[Touch<'_>]) -> Result<(), SubmitError> {
        let shared = self.shared();
        shared.deferred.reclaim();
        let usable = |touch: &Touch<'_>| touch.region.may_be_used_by(shared);
        let usable = touches.iter().try_for_each(usable);
        let admitted = usable
            .and_then(|()| self.check_thread())
            .and_then(|()| self.refuse_capture());
        admitted.map_err(SubmitError::Refused)
    }

    /// Makes the stream wait for everything that work on this memory would wait for.
    #[doc(hidden)]
    pub fn wait_for_uses(&self, touches: &[Touch<'_>]) -> Result<(), Error> {
        self.admit(touches)?;
        let _guard = self.begin_submit();
        Ok(self.wait_for_conflicts(touches)?)
    }

    fn wait_for_conflicts(&self, touches: &[Touch<'_>]) -> Result<(), SubmitError> {
        for touch in touches {
            let access = touch.access(self.id());
            for fence in touch.region.ledger().conflicts(&access) {
                if !fence.may_skip() {
                    self.live().wait_for(fence.event()).map_err(refused)?;
                }
            }
        }
        Ok(())
    }

    /// Records the fence behind the work and enters it in the ledgers.
    fn mark(
        &self,
        touches: &[Touch<'_>],
        fence: UnrecordedFence,
    ) -> Result<DeviceFence, SubmitError> {
        // If the driver panics, there is no way to tell what uses the memory.
        let fence = on_unwind(|| strand(touches), || fence.record(self.live()))
            .map_err(|error| self.submitted_without_fence(touches, error))?;
        for touch in touches {
            let access = touch.access(self.id());
            touch.region.ledger().record(access, fence.clone());
        }
        Ok(fence)
    }

    /// Begins work that is submitted piece by piece, perhaps by several threads. The memory it touches is
    /// borrowed until [`Submission::finish`], so no conflicting use can be submitted in between. The order
    /// is locked only at the end, for the ledger entry; the stream can be used for other work until then.
    pub(crate) fn begin<'a>(
        &'a self,
        touches: &'a [Touch<'a>],
    ) -> Result<Submission<'a>, SubmitError> {
        self.admit(touches)?;
        let fence = self.shared().events.claim().map_err(refused)?;
        let begin_submit = self.begin_submit();
        self.wait_for_conflicts(touches)?;
        Ok(Submission {
            stream: self,
            touches,
            fence: Some(fence),
            _guard: begin_submit,
        })
    }

    /// Whether work on this memory would have to wait for other streams.
    pub(crate) fn would_wait(&self, touch: &Touch<'_>) -> bool {
        let access = touch.access(self.id());
        let ledger = touch.region.ledger();
        ledger.conflicts(&access).any(|fence| !fence.has_let_go())
    }

    /// Waits for work that was submitted but has no fence behind it.
    fn submitted_without_fence(
        &self,
        touches: &[Touch<'_>],
        error: pinlane_driver::Error,
    ) -> SubmitError {
        if error.is_fatal() || self.live().drains() {
            return SubmitError::Refused(error.into());
        }
        strand(touches);
        SubmitError::Stranded(error.into())
    }

    /// Submits and waits, for memory that is only borrowed. Aborts the process if there is no way to tell
    /// whether the device still uses the memory, since continuing would be unsound.
    pub(crate) fn submit_borrowed_and_drain(
        &self,
        touches: &[Touch<'_>],
        enqueue: impl FnOnce(&dyn Driver, StreamHandle) -> pinlane_driver::Result<()>,
    ) -> Result<(), Error> {
        or_abort(|| self.submit_and_drain(touches, enqueue))
    }

    /// Submits work on borrowed memory. Aborts the process if the driver panics with the work in flight,
    /// since nothing would wait for it.
    pub(crate) fn submit_borrowed(
        &self,
        touches: &[Touch<'_>],
        enqueue: impl FnOnce(&dyn Driver, StreamHandle) -> pinlane_driver::Result<()>,
    ) -> Result<DeviceFence, Error> {
        or_abort(|| self.submit(touches, enqueue))
    }
}

/// Work in progress on a stream, see [`Stream::begin`].
pub(crate) struct Submission<'a> {
    stream: &'a Stream,
    touches: &'a [Touch<'a>],
    /// Taken by `finish`.
    fence: Option<UnrecordedFence>,
    _guard: SubmitGuard<'a>,
}

impl Submission<'_> {
    /// Records the end of the work, whether or not all of it could be submitted.
    pub(crate) fn finish(mut self) -> Result<DeviceFence, SubmitError> {
        let fence = self.fence.take().expect("finished once");
        let _order = self.stream.submit_order();
        self.stream.mark(self.touches, fence)
    }
}

impl Drop for Submission<'_> {
    /// A panic prevented `finish`, so there is no way to tell what uses the memory.
    fn drop(&mut self) {
        if self.fence.is_some() {
            strand(self.touches);
        }
    }
}

fn refused(error: pinlane_driver::Error) -> SubmitError {
    SubmitError::Refused(error.into())
}

/// Submits work on borrowed memory, and aborts if it is stranded.
fn or_abort<T>(submit: impl FnOnce() -> Result<T, SubmitError>) -> Result<T, Error> {
    match abort_on_unwind(submit) {
        Ok(value) => Ok(value),
        Err(SubmitError::Refused(error)) => Err(error),
        Err(SubmitError::Stranded(error)) => abort_over_borrowed(&error),
    }
}

/// Marks memory whose uses can no longer be waited for.
fn strand(touches: &[Touch<'_>]) {
    for touch in touches {
        touch.region.strand();
    }
}

/// Aborts the process if `work` panics.
pub(crate) fn abort_on_unwind<T>(work: impl FnOnce() -> T) -> T {
    let reason = "the driver panicked while it copied borrowed memory; ending the process";
    on_unwind(|| logging::abort(format_args!("{reason}")), work)
}

/// Waits until the device is finished with borrowed memory.
pub(crate) fn settle_borrowed(fence: &DeviceFence) -> pinlane_driver::Result<()> {
    use crate::transfer_protocol::Settled;
    match fence.settle() {
        Settled::Done(result) => result,
        Settled::Unknown(error) => abort_over_borrowed(&error.into()),
    }
}

/// Aborts the process. Returning would give borrowed memory back to its owner while the device may still
/// use it.
pub(crate) fn abort_over_borrowed(error: &Error) -> ! {
    logging::abort(format_args!(
        "the driver cannot tell whether a copy of borrowed memory is done ({error}); \
         ending the process, since going on could corrupt memory"
    ))
}

//! A buffer in flight.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use pinlane_driver::{Error, Result as DriverResult};

use super::{Completion, DeferredFree, Fence, Settled};
use crate::sync::Arc;

/// A buffer that the device may access until its fence has fired.
///
/// The buffer can only be taken out once the fence is known to have fired. If dropped earlier, it goes to
/// [`DeferredFree`].
pub(crate) struct InFlight<B: Send + 'static, F: Fence> {
    /// `None` once the buffer has been taken out.
    load: Option<(B, F)>,
    deferred: Arc<DeferredFree<F>>,
    told: Option<Arc<Completion<DriverResult<()>>>>,
}

/// How a transfer ended: with the buffer, or with an error and the buffer, unless there is no way to tell
/// whether the device still uses it.
pub(crate) type Landed<B> = Result<B, (Error, Option<B>)>;

const GIVEN_BACK: &str = "the transfer was awaited before";

impl<B: Send + 'static, F: Fence> InFlight<B, F> {
    pub(crate) fn new(buffer: B, fence: F, deferred: Arc<DeferredFree<F>>) -> Self {
        Self {
            load: Some((buffer, fence)),
            deferred,
            told: None,
        }
    }

    pub(crate) fn is_done(&self) -> DriverResult<bool> {
        let is_done = |(_, fence): &(B, F)| fence.is_done();
        self.load.as_ref().map_or(Ok(true), is_done)
    }

    /// Waits until the fence has fired or `timeout` has passed. Returns whether it has fired.
    pub(crate) fn wait_timeout(&self, timeout: Duration) -> DriverResult<bool> {
        let wait = |(_, fence): &(B, F)| fence.wait_timeout(timeout);
        self.load.as_ref().map_or(Ok(true), wait)
    }

    /// Waits for the fence and returns the buffer.
    ///
    /// # Panics
    /// If the buffer was already returned.
    pub(crate) fn land(&mut self) -> Landed<B> {
        match self.fence().settle() {
            Settled::Done(result) => self.landed(result),
            Settled::Unknown(error) => {
                self.defer();
                Err((error, None))
            }
        }
    }

    /// Like [`land`](Self::land), without blocking. Calls `watch` once, to be notified of the completion.
    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
        watch: impl FnOnce(&F, Arc<Completion<DriverResult<()>>>) -> DriverResult<()>,
    ) -> Poll<Landed<B>> {
        if self.told.is_none() {
            match self.fence().is_done() {
                Ok(true) => return Poll::Ready(self.landed(Ok(()))),
                Ok(false) => {}
                Err(error) => return Poll::Ready(self.land_after(error)),
            }
            let told = Arc::new(Completion::new());
            if let Err(error) = watch(self.fence(), Arc::clone(&told)) {
                // Nothing would ever wake the task, so wait here. The copy itself may have succeeded.
                self.fence().note(error);
                return Poll::Ready(self.land());
            }
            self.told = Some(told);
        }
        let told = self.told.as_ref().expect("set above");
        Poll::Ready(match ready!(told.poll(context)) {
            Ok(()) => self.landed(Ok(())),
            Err(error) => self.land_after(error),
        })
    }

    /// Waits here after an error, and reports it.
    fn land_after(&mut self, error: Error) -> Landed<B> {
        if error.is_fatal() {
            return self.landed(Err(error));
        }
        match self.land() {
            Ok(buffer) => Err((error, Some(buffer))),
            failed => failed,
        }
    }

    fn fence(&self) -> &F {
        &self.load.as_ref().expect(GIVEN_BACK).1
    }

    fn landed(&mut self, result: DriverResult<()>) -> Landed<B> {
        let (buffer, _fence) = self.load.take().expect(GIVEN_BACK);
        match result {
            Ok(()) => Ok(buffer),
            Err(error) => Err((error, Some(buffer))),
        }
    }

    fn defer(&mut self) {
        if let Some((buffer, fence)) = self.load.take()
            && std::mem::needs_drop::<B>()
        {
            self.deferred.defer(vec![fence], Box::new(buffer));
        }
    }
}

impl<B: Send + 'static, F: Fence> Drop for InFlight<B, F> {
    fn drop(&mut self) {
        if matches!(&self.load, Some((_, fence)) if fence.has_let_go()) {
            self.load = None;
        }
        self.defer();
    }
}

//! A point in a stream, as the protocol sees it.

use std::time::Duration;

use pinlane_driver::{Error, Result};

/// A fence fires once, when all work before it is done, and stays fired.
pub(crate) trait Fence: Send + 'static {
    fn is_done(&self) -> Result<bool>;

    fn wait(&self) -> Result<()>;

    /// Waits until the fence has fired or `timeout` has passed. Returns whether it has fired.
    fn wait_timeout(&self, timeout: Duration) -> Result<bool>;

    /// Waits by a stronger means than [`wait`](Self::wait), which has just failed.
    fn wait_hard(&self) -> Result<()>;

    /// Keeps an error that no call can return.
    fn note(&self, error: Error);

    /// Whether the device is finished with all earlier work: the fence has fired, or the device is dead.
    /// Errors are noted; a failed query counts as not finished.
    fn has_let_go(&self) -> bool {
        self.let_go(self.is_done())
    }

    /// Like [`has_let_go`](Self::has_let_go), but waits. Retries a few times, since one failed call proves
    /// nothing, with at most `patience` each.
    fn lets_go_within(&self, patience: Duration) -> bool {
        for _ in 0..3 {
            match self.wait_timeout(patience) {
                Ok(done) => return done,
                failed => {
                    if self.let_go(failed) {
                        return true;
                    }
                }
            }
        }
        false
    }

    #[doc(hidden)]
    fn let_go(&self, asked: Result<bool>) -> bool {
        asked.unwrap_or_else(|error| {
            let dead = error.is_fatal();
            self.note(error);
            dead
        })
    }

    /// Waits until the device is certainly finished with memory used before the fence.
    ///
    /// If an attempt fails, its error is kept and reported even if a later attempt succeeds.
    fn settle(&self) -> Settled {
        let Err(first) = self.wait() else {
            return Settled::Done(Ok(()));
        };
        if first.is_fatal() {
            return Settled::Done(Err(first));
        }
        for attempt in [Self::wait, Self::wait_hard, Self::wait_hard] {
            match attempt(self) {
                Ok(()) => return Settled::Done(Err(first)),
                // A dead context moves no data, which is proof too.
                Err(error) if error.is_fatal() => return Settled::Done(Err(error)),
                Err(error) => self.note(error),
            }
        }
        Settled::Unknown(first)
    }
}

/// Result of [`Fence::settle`].
#[derive(Debug)]
pub(crate) enum Settled {
    /// No engine accesses the memory any more. Holds the result of the work itself.
    Done(Result<()>),
    /// There is no way to tell. The memory must not be freed or reused.
    Unknown(Error),
}

//! A point in a stream, as the protocol sees it.

use std::time::Duration;

use pinlane_driver::{Error, Result};

/// Fires once, when all work before it is done, and stays fired.
pub(crate) trait Fence: Send + 'static {
    /// Whether it has fired.
    fn is_done(&self) -> Result<bool>;

    /// Waits until it has fired.
    fn wait(&self) -> Result<()>;

    /// Waits until it has fired, at most `timeout`. Whether it has.
    fn wait_timeout(&self, timeout: Duration) -> Result<bool>;

    /// Waits by any stronger means than [`wait`](Self::wait), which has just failed.
    fn wait_hard(&self) -> Result<()>;

    /// Keeps an error that no caller can be told of.
    fn note(&self, error: Error);

    /// Whether the device has let go of what comes before: it has fired, or the device is dead. An
    /// error is noted; a fence that cannot be asked now has not let go.
    fn has_let_go(&self) -> bool {
        self.let_go(self.is_done())
    }

    /// The same, waiting for it. Asked a few times, since one failed question proves nothing, and
    /// never longer than `patience` each.
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

    /// Waits until memory before the fence is certainly out of the device's hands.
    ///
    /// An error of one attempt is kept and reported even when a later attempt gives the proof.
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
                // A dead context moves no bytes: that is a proof, too.
                Err(error) if error.is_fatal() => return Settled::Done(Err(error)),
                Err(error) => self.note(error),
            }
        }
        Settled::Unknown(first)
    }
}

/// What [`Fence::settle`] found out.
#[derive(Debug)]
pub(crate) enum Settled {
    /// No engine touches the memory any more; the work itself went as the result says.
    Done(Result<()>),
    /// Nobody can tell. The memory must stay where it is.
    Unknown(Error),
}

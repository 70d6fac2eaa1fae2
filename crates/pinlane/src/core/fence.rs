//! A point in a stream, as the protocol sees it.

use std::time::Duration;

use pinlane_driver::{Error, Result};

/// Fires once, when all work before it is done, and stays fired.
pub(crate) trait Fence: Send + 'static {
    /// Whether it has fired.
    fn is_done(&self) -> Result<bool>;

    /// Wait until it has fired.
    fn wait(&self) -> Result<()>;

    /// Wait until it has fired, at most `timeout`. Whether it has.
    fn wait_timeout(&self, timeout: Duration) -> Result<bool>;

    /// Wait by any stronger means than [`wait`](Self::wait), which has just failed.
    fn wait_hard(&self) -> Result<()>;

    /// Wait until memory before the fence is certainly out of the device's hands.
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
                Err(_) => {}
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

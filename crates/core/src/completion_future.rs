//! Awaiting work on the device.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::Result;
use crate::device::Shared;
use crate::fence::DeviceFence;
use crate::sync::Arc as CoreArc;
use crate::transfer_protocol::InFlight;

/// Future that resolves when work on the device is done. Returned by
/// [`Event::completed`](crate::Event::completed) and [`Stream::finished`](crate::Stream::finished).
///
/// Works in every async runtime. Dropping it cancels nothing.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Completed {
    state: State,
}

enum State {
    Pending(InFlight<(), DeviceFence>, Arc<Shared>),
    /// `None` once it was returned.
    Ready(Option<Result<()>>),
}

impl Completed {
    pub(crate) fn new(fence: DeviceFence, shared: Arc<Shared>) -> Self {
        let in_flight = InFlight::new((), fence, CoreArc::clone(&shared.deferred));
        Self {
            state: State::Pending(in_flight, shared),
        }
    }

    pub(crate) fn ready(result: Result<()>) -> Self {
        Self {
            state: State::Ready(Some(result)),
        }
    }
}

impl Future for Completed {
    type Output = Result<()>;

    /// # Panics
    /// If polled again after it returned `Ready`.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let result = match &mut self.state {
            State::Pending(in_flight, shared) => {
                let tell = |fence: &_, told| shared.notifier.tell(fence, told);
                let landed = ready!(in_flight.poll(context, tell));
                landed.map_err(|(error, _)| error.into())
            }
            State::Ready(result) => result.take().expect("polled again after it was ready"),
        };
        self.state = State::Ready(None);
        Poll::Ready(result)
    }
}

impl fmt::Debug for Completed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = !matches!(self.state, State::Pending(..));
        f.debug_struct("Completed").field("done", &done).finish()
    }
}

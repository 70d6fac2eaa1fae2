//! Awaiting work on the device.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::Result;
use crate::device::Shared;
use crate::fence::DeviceFence;
use crate::protocol::InFlight;
use crate::sync::Arc as CoreArc;

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
    Ready(Result<()>),
    Taken,
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
            state: State::Ready(result),
        }
    }
}

impl Future for Completed {
    type Output = Result<()>;

    /// # Panics
    /// If polled again after it returned `Ready`.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        if let State::Pending(in_flight, shared) = &mut self.state {
            let polled = in_flight.poll(context, |fence, told| shared.notify_when(fence, told));
            let Poll::Ready(landed) = polled else {
                return Poll::Pending;
            };
            self.state = State::Ready(landed.map_err(|(error, _)| error.into()));
        }
        match std::mem::replace(&mut self.state, State::Taken) {
            State::Ready(result) => Poll::Ready(result),
            _ => panic!("polled again after it was ready"),
        }
    }
}

impl fmt::Debug for Completed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = !matches!(self.state, State::Pending(..));
        f.debug_struct("Completed").field("done", &done).finish()
    }
}

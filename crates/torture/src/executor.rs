//! An executor that lets virtual time pass instead of sleeping, so that a run replays exactly.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use pinlane_sim::Sim;

/// The future's output, or an error if it never will be ready.
///
/// It is polled after every step, woken or not: wake-ups come from a thread of their own, at times
/// that do not replay. That they come at all is tested with an executor that sleeps.
pub(crate) fn block_on<F: Future>(sim: &Sim, future: F) -> Result<F::Output, String> {
    let mut context = Context::from_waker(Waker::noop());
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Ok(output);
        }
        if !sim.step() {
            return Err("a transfer never ends".into());
        }
    }
}

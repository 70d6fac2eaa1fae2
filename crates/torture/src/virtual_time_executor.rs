//! An executor that advances virtual time instead of sleeping, so that runs replay exactly.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use pinlane_sim::Sim;

/// The future's output, or an error if it never completes.
///
/// Polls after every step, woken or not: wake-ups come from another thread, at times that do not
/// replay. Other tests check them with an executor that sleeps.
pub(crate) fn block_on<F: Future>(sim: &Sim, future: F) -> Result<F::Output, String> {
    let mut context = Context::from_waker(Waker::noop());
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Ok(output);
        }
        if !sim.step() {
            return Err("a transfer never completes".into());
        }
    }
}

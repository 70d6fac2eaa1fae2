//! An executor that lets virtual time pass instead of sleeping, so that a run replays exactly.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use pinlane_sim::Sim;

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// The future's output. It is polled only after it was woken; an error if nothing ever will.
pub(crate) fn block_on<F: Future>(sim: &Sim, future: F) -> Result<F::Output, String> {
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut future = pin!(future);
    loop {
        if woken.0.swap(false, Ordering::AcqRel)
            && let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker))
        {
            return Ok(output);
        }
        if !sim.step() && !woken.0.load(Ordering::Acquire) {
            return Err("a task is never woken".into());
        }
    }
}

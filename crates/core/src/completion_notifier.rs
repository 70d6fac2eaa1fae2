//! Wakes tasks when a fence has fired, without delaying any user stream.
//!
//! Each awaited transfer gets an internal stream that waits for its fence and then calls back, so no
//! transfer waits for another.

use std::sync::mpsc::{Sender, channel};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::task::Waker;

use pinlane_driver::{Driver, Result, StreamFlags, StreamHandle};

use crate::device_core::DeviceCore;
use crate::fence::DeviceFence;
use crate::protocol::{Completion, FreeList};
use crate::sync::Arc as CoreArc;
use crate::sync::lock;

/// A device's internal streams for waking tasks.
pub(crate) struct CompletionNotifier {
    /// Shared with callbacks, which must not own anything that calls the driver when dropped.
    idle: CoreArc<FreeList<StreamHandle>>,
    /// All streams ever created, destroyed at shutdown whether idle or not: work on a destroyed stream
    /// still runs to completion.
    made: Mutex<Vec<StreamHandle>>,
}

impl CompletionNotifier {
    pub(crate) fn new() -> Self {
        Self {
            idle: CoreArc::new(FreeList::new()),
            made: Mutex::default(),
        }
    }

    /// Completes `told` and wakes its task once `fence` has fired.
    pub(crate) fn tell(
        &self,
        driver: &dyn Driver,
        fence: &DeviceFence,
        told: CoreArc<Completion<Result<()>>>,
    ) -> Result<()> {
        let stream = self.idle.claim(|| self.make(driver))?;
        let idle = CoreArc::clone(&self.idle);
        let callback = Box::new(move |result| {
            let waker = told.complete(result);
            idle.release(stream);
            if let Some(waker) = waker {
                wake_elsewhere(waker);
            }
        });
        let sent = driver
            .stream_wait_event(stream, fence.event())
            .and_then(|()| driver.host_callback(stream, callback));
        if sent.is_err() {
            self.idle.release(stream);
        }
        sent
    }

    fn make(&self, driver: &dyn Driver) -> Result<StreamHandle> {
        let stream = driver.stream_create(StreamFlags {
            non_blocking: true,
            priority: 0,
        })?;
        let mut made = lock(&self.made);
        made.push(stream);
        Ok(stream)
    }

    /// Destroys all streams. Nothing is left that could await.
    pub(crate) fn dismiss(&mut self, core: &DeviceCore) {
        let made = self.made.get_mut().unwrap_or_else(PoisonError::into_inner);
        for stream in made.drain(..) {
            // SAFETY: created here and not used again, since nothing is left to claim it.
            core.give_back(|driver| unsafe { driver.stream_destroy(stream) });
        }
    }
}

/// Wakes a task on a dedicated thread. A waker may poll or drop its task immediately, and with it transfers
/// and devices. That calls the driver, which is forbidden on the driver's callback thread, where this runs.
fn wake_elsewhere(waker: Waker) {
    static WAKERS: LazyLock<Option<Sender<Waker>>> = LazyLock::new(|| {
        let (sender, inbox) = channel::<Waker>();
        let work = move || {
            for waker in inbox {
                let woken = std::panic::catch_unwind(move || waker.wake());
                // The panic hook has already reported it, and dropping the payload might panic again.
                woken.unwrap_or_else(std::mem::forget);
            }
        };
        let thread = std::thread::Builder::new().name("pinlane-wake".into());
        thread.spawn(work).is_ok().then_some(sender)
    });
    match &*WAKERS {
        Some(wakers) => {
            // The thread never exits, so the message arrives.
            let _ = wakers.send(waker);
        }
        // No thread could be started: waking here is better than never.
        None => waker.wake(),
    }
}

//! Wakes tasks when a fence has fired, without delaying any user stream.
//!
//! Each awaited transfer gets an internal stream that waits for its fence and then calls back, so no
//! transfer waits for another.

use std::sync::{Arc, Mutex};

use pinlane_driver::{Result, StreamHandle};

use crate::device_core::DeviceCore;
use crate::driver_handles::{NON_BLOCKING, OwnStream, StreamRef};
use crate::fence::DeviceFence;
use crate::sync::{Arc as CoreArc, lock};
use crate::transfer_protocol::{Completion, FreeList};
use crate::wake_threads::wake_elsewhere;

/// A device's internal streams for waking tasks.
pub(crate) struct CompletionNotifier {
    core: Arc<DeviceCore>,
    /// Shared with callbacks, which must not own anything that calls the driver when dropped.
    idle: CoreArc<FreeList<StreamHandle>>,
    /// All streams ever created, destroyed at shutdown whether idle or not.
    made: Mutex<Vec<OwnStream>>,
}

impl CompletionNotifier {
    pub(crate) fn new(core: &Arc<DeviceCore>) -> Self {
        Self {
            core: Arc::clone(core),
            idle: CoreArc::new(FreeList::new()),
            made: Mutex::default(),
        }
    }

    /// Completes `told` and wakes its task once `fence` has fired.
    pub(crate) fn tell(
        &self,
        fence: &DeviceFence,
        told: CoreArc<Completion<Result<()>>>,
    ) -> Result<()> {
        let handle = self.idle.claim(|| self.make())?;
        let idle = CoreArc::clone(&self.idle);
        let callback = Box::new(move |result| {
            let waker = told.complete(result);
            idle.release(handle);
            if let Some(waker) = waker {
                wake_elsewhere(waker);
            }
        });
        // SAFETY: in `made`, which destroys it only at shutdown.
        let stream = unsafe { StreamRef::new(&self.core, handle) };
        // SAFETY: the callback hands the waker to another thread, and owns nothing that calls the driver.
        let call_back = |()| unsafe { stream.call_back(callback) };
        let sent = stream.wait_for(fence.event()).and_then(call_back);
        if sent.is_err() {
            self.idle.release(handle);
        }
        sent
    }

    fn make(&self) -> Result<StreamHandle> {
        let stream = OwnStream::create(&self.core, NON_BLOCKING)?;
        let handle = stream.live().handle();
        lock(&self.made).push(stream);
        Ok(handle)
    }
}

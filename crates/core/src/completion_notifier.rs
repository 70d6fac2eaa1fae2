//! Wakes tasks when a fence has fired, without delaying any user stream.
//!
//! Each awaited transfer gets an internal stream that waits for its fence and then calls back, so no
//! transfer waits for another.

use std::sync::{Arc, Mutex};

use pinlane_driver::{Result, StreamHandle};

use crate::device_core::{DeviceCore, NON_BLOCKING, OwnStream};
use crate::fence::DeviceFence;
use crate::protocol::{Completion, FreeList};
use crate::sync::{Arc as CoreArc, lock};
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
        let stream = self.idle.claim(|| self.make())?;
        let idle = CoreArc::clone(&self.idle);
        let callback = Box::new(move |result| {
            let waker = told.complete(result);
            idle.release(stream);
            if let Some(waker) = waker {
                wake_elsewhere(waker);
            }
        });
        let driver = &self.core.driver;
        let sent = driver
            .stream_wait_event(stream, fence.event())
            .and_then(|()| driver.host_callback(stream, callback));
        if sent.is_err() {
            self.idle.release(stream);
        }
        sent
    }

    fn make(&self) -> Result<StreamHandle> {
        let stream = OwnStream::create(&self.core, NON_BLOCKING)?;
        let handle = stream.handle;
        lock(&self.made).push(stream);
        Ok(handle)
    }
}

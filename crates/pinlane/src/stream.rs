//! Streams: the order of work on the device.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use pinlane_driver::{Driver, StreamFlags, StreamHandle};

use crate::core::Completion;
use crate::device::Shared;
use crate::fence::DeviceFence;
use crate::sync::Arc as CoreArc;
use crate::{Error, Event, Result};

/// A FIFO of work on the device. Work of one stream runs in order, of different streams at the
/// same time, except where they use the same device memory: then the order is the one in which the
/// program submitted it.
///
/// Cheap to clone; all clones are the same stream. Dropping the last one does not stop its work.
#[derive(Clone)]
pub struct Stream {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    handle: StreamHandle,
    id: u64,
    /// The default stream is the driver's own.
    owned: bool,
    /// A second stream that waits for fences of this one and tells tasks, so that nothing of the
    /// host's ever stands in the way of the user's work. Made when a transfer is first awaited.
    herald: Mutex<Option<StreamHandle>>,
}

/// Why work is not on its way.
pub(crate) enum SubmitError {
    /// Nothing is in flight.
    Refused(Error),
    /// It may be in flight, and nobody can tell until when.
    Stranded(Error),
}

impl SubmitError {
    /// For work on device memory alone, which keeps its own books of what is stranded.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Refused(error) | Self::Stranded(error) => error,
        }
    }
}

impl From<SubmitError> for Error {
    fn from(error: SubmitError) -> Self {
        error.into_error()
    }
}

impl Stream {
    pub(crate) fn create(shared: &Arc<Shared>, flags: StreamFlags) -> Result<Self> {
        let handle = shared.link.driver.stream_create(flags)?;
        Ok(Self::new(shared, handle, true))
    }

    pub(crate) fn default_of(shared: &Arc<Shared>) -> Self {
        Self::new(shared, shared.link.driver.default_stream(), false)
    }

    fn new(shared: &Arc<Shared>, handle: StreamHandle, owned: bool) -> Self {
        Self {
            inner: Arc::new(Inner {
                shared: Arc::clone(shared),
                handle,
                id: if owned {
                    Shared::next_stream_id()
                } else {
                    // One stream, however many values stand for it.
                    Shared::DEFAULT_STREAM_ID
                },
                owned,
                herald: Mutex::new(None),
            }),
        }
    }

    /// Wait until all its work is done.
    pub fn synchronize(&self) -> Result<()> {
        let result = self.driver().stream_synchronize(self.inner.handle);
        self.shared().lot.reclaim();
        Ok(result?)
    }

    /// Whether all its work is done.
    pub fn is_idle(&self) -> Result<bool> {
        Ok(self.driver().stream_query(self.inner.handle)?)
    }

    /// Let `event` fire when all work that the stream holds now is done.
    pub fn record(&self, event: &Event) -> Result<()> {
        event.belongs_to(&self.shared().link)?;
        Ok(self
            .driver()
            .event_record(event.handle, self.inner.handle)?)
    }

    /// Let later work of this stream start only after `event` has fired.
    pub fn wait(&self, event: &Event) -> Result<()> {
        event.belongs_to(&self.shared().link)?;
        Ok(self
            .driver()
            .stream_wait_event(self.inner.handle, event.handle)?)
    }

    /// The driver's handle, for foreign libraries. What they submit is not tracked.
    #[must_use]
    pub fn handle(&self) -> StreamHandle {
        self.inner.handle
    }

    pub(crate) fn id(&self) -> u64 {
        self.inner.id
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    pub(crate) fn driver(&self) -> &dyn Driver {
        &*self.inner.shared.link.driver
    }

    /// Have `told` completed, on a thread of the driver's, when `fence` has fired.
    pub(crate) fn tell(
        &self,
        fence: &DeviceFence,
        told: CoreArc<Completion<pinlane_driver::Result<()>>>,
    ) -> pinlane_driver::Result<()> {
        let herald = self.herald()?;
        self.driver().stream_wait_event(herald, fence.event())?;
        let callback = Box::new(move |result| told.complete(result));
        self.driver().host_callback(herald, callback)
    }

    fn herald(&self) -> pinlane_driver::Result<StreamHandle> {
        let mut herald = self
            .inner
            .herald
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = *herald {
            return Ok(stream);
        }
        let stream = self.driver().stream_create(StreamFlags {
            non_blocking: true,
            priority: 0,
        })?;
        *herald = Some(stream);
        Ok(stream)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let herald = self
            .herald
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let own = self.owned.then_some(self.handle);
        for stream in [herald.take(), own].into_iter().flatten() {
            // SAFETY: created by this stream, which was its only user and is gone.
            self.shared
                .link
                .give_back(|driver| unsafe { driver.stream_destroy(stream) });
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream").field(&self.inner.handle.0).finish()
    }
}

//! Streams: the order of work on the device.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use pinlane_driver::{Driver, ErrorKind, StreamFlags, StreamHandle};

use crate::completion_future::Completed;
use crate::device::Shared;
use crate::driver_handles::{OwnStream, StreamRef};
use crate::sync::lock;
use crate::{Error, Event, Result};

/// An in-order queue of work on the device.
///
/// Work on different streams runs concurrently, except where it uses the same device memory: then it runs
/// in the order in which the program submitted it.
///
/// Cheap to clone; all clones are the same stream. Dropping the last one does not stop its work.
#[derive(Clone)]
pub struct Stream {
    inner: Arc<Inner>,
}

struct Inner {
    /// `None` for the default stream, which the driver owns.
    own: Option<OwnStream>,
    shared: Arc<Shared>,
    id: u64,
    /// Held while submitting, so that the ledgers see fences in stream order.
    submit_order: Arc<Mutex<()>>,
    /// Submissions begun, submissions ended, and submissions known to be done.
    begun: AtomicU64,
    ended: AtomicU64,
    done: AtomicU64,
    /// The handle was given out, so code outside this library may use the stream.
    exposed: AtomicBool,
}

/// Why work was not submitted cleanly.
pub(crate) enum SubmitError {
    /// Nothing is in flight.
    Refused(Error),
    /// Work may be in flight, and there is no way to tell when it will be done.
    Stranded(Error),
}

impl From<SubmitError> for Error {
    /// For work on device memory only, whose ledger tracks stranded work itself.
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Refused(error) | SubmitError::Stranded(error) => error,
        }
    }
}

impl Stream {
    pub(crate) fn create(shared: &Arc<Shared>, flags: StreamFlags) -> Result<Self> {
        let own = OwnStream::create(&shared.core, flags)?;
        Ok(Self::new(Arc::clone(shared), Some(own)))
    }

    pub(crate) fn default_of(shared: &Arc<Shared>) -> Self {
        Self::new(Arc::clone(shared), None)
    }

    fn new(shared: Arc<Shared>, own: Option<OwnStream>) -> Self {
        let (id, submit_order) = match &own {
            Some(_) => (Shared::next_stream_id(), Arc::default()),
            // All handles to the default stream are the same stream.
            None => (
                Shared::DEFAULT_STREAM_ID,
                Arc::clone(&shared.default_submit_order),
            ),
        };
        Self {
            inner: Arc::new(Inner {
                exposed: AtomicBool::new(own.is_none()),
                own,
                shared,
                id,
                submit_order,
                begun: AtomicU64::new(0),
                ended: AtomicU64::new(0),
                done: AtomicU64::new(0),
            }),
        }
    }

    /// Waits until all work on the stream is done.
    pub fn synchronize(&self) -> Result<()> {
        let result = match self.is_quiet() {
            true => Ok(()),
            false => self.drain(),
        };
        self.shared().deferred.reclaim();
        Ok(result?)
    }

    /// Waits for all work through the driver.
    pub(crate) fn drain(&self) -> pinlane_driver::Result<()> {
        // A submission that has not ended may be enqueued after the wait.
        let ended = self.inner.ended.load(Ordering::Acquire);
        self.live().synchronize()?;
        // An older wait on another thread may store later. That only loses information.
        self.inner.done.store(ended, Ordering::Release);
        Ok(())
    }

    /// Whether the stream is known to be idle without asking the driver.
    pub(crate) fn is_quiet(&self) -> bool {
        let done = self.inner.done.load(Ordering::Acquire);
        done == self.inner.begun.load(Ordering::Acquire) && !self.is_exposed()
    }

    /// Marks a submission as in progress until the guard is dropped.
    pub(crate) fn begin_submit(&self) -> SubmitGuard<'_> {
        self.inner.begun.fetch_add(1, Ordering::AcqRel);
        SubmitGuard(&self.inner.ended)
    }

    /// Whether code outside this library may use the stream.
    pub(crate) fn is_exposed(&self) -> bool {
        self.inner.exposed.load(Ordering::Relaxed)
    }

    /// Whether all work on the stream is done.
    pub fn is_idle(&self) -> Result<bool> {
        Ok(self.live().is_idle()?)
    }

    /// Resolves when all work submitted so far is done.
    ///
    /// ```
    /// # async fn example(stream: pinlane::Stream, mut target: pinlane::DeviceBuf<u8>) -> pinlane::Result<()> {
    /// stream.fill_bytes(&mut target, 7)?;
    /// stream.finished().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn finished(&self) -> Completed {
        match self.submit(&[], |_, _| Ok(())) {
            Ok(fence) => Completed::new(fence, Arc::clone(self.shared())),
            Err(error) => Completed::ready(Err(error.into())),
        }
    }

    /// Records `event`: it fires when all work submitted so far is done.
    pub fn record(&self, event: &Event) -> Result<()> {
        event.belongs_to(&self.shared().core)?;
        let _guard = self.begin_submit();
        Ok(self.live().record(event.own())?)
    }

    /// Makes later work on this stream wait until `event` has fired.
    pub fn wait(&self, event: &Event) -> Result<()> {
        event.belongs_to(&self.shared().core)?;
        let _guard = self.begin_submit();
        Ok(self.live().wait_for(event.own())?)
    }

    /// Returns the driver's handle. From here on, other code may use the stream.
    pub(crate) fn expose(&self) -> u64 {
        self.inner.exposed.store(true, Ordering::Relaxed);
        self.handle().raw()
    }

    /// Rejects a stream that is being captured. Tracked work cannot be part of a graph: its fence would
    /// fire never or immediately, and a ring slot is refilled long before the graph runs.
    pub(crate) fn refuse_capture(&self) -> Result<()> {
        // Only code that has the handle can capture a stream, and the default stream cannot be captured.
        let possible = self.inner.own.is_some() && self.is_exposed();
        if !possible || !self.live().is_capturing()? {
            return Ok(());
        }
        let error = pinlane_driver::Error::new(ErrorKind::Capturing, "submit")
            .with_detail("copy before the capture begins, or after it has ended");
        Err(Error::Driver(error))
    }

    pub(crate) fn live(&self) -> StreamRef<'_> {
        match &self.inner.own {
            Some(own) => own.live(),
            None => StreamRef::default_of(&self.inner.shared.core),
        }
    }

    pub(crate) fn handle(&self) -> StreamHandle {
        self.live().handle()
    }

    /// Locks the stream for submission until the guard is dropped.
    pub(crate) fn submit_order(&self) -> MutexGuard<'_, ()> {
        lock(&*self.inner.submit_order)
    }

    pub(crate) fn id(&self) -> u64 {
        self.inner.id
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    pub(crate) fn driver(&self) -> &dyn Driver {
        &*self.inner.shared.core.driver
    }
}

/// A submission in progress.
pub(crate) struct SubmitGuard<'a>(&'a AtomicU64);

impl Drop for SubmitGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream").field(&self.handle().raw()).finish()
    }
}

//! Streams: the order of work on the device.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use pinlane_driver::{Driver, ErrorKind, StreamFlags, StreamHandle};

use crate::completed::Completed;
use crate::device::Shared;
use crate::sync::lock;
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
    /// Taken by whoever submits: the order of fences in the books is that on the stream.
    submit_order: Arc<Mutex<()>>,
    /// Submissions that were begun, those that have ended, and those known to be done.
    begun: AtomicU64,
    ended: AtomicU64,
    done: AtomicU64,
    /// Others know its handle, and may do anything with it.
    exposed: AtomicBool,
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
        let handle = shared.core.driver.stream_create(flags)?;
        Ok(Self::new(shared, handle, true))
    }

    pub(crate) fn default_of(shared: &Arc<Shared>) -> Self {
        Self::new(shared, shared.core.driver.default_stream(), false)
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
                submit_order: if owned {
                    Arc::default()
                } else {
                    Arc::clone(&shared.default_submit_order)
                },
                begun: AtomicU64::new(0),
                ended: AtomicU64::new(0),
                done: AtomicU64::new(0),
                exposed: AtomicBool::new(!owned),
            }),
        }
    }

    /// Wait until all its work is done.
    pub fn synchronize(&self) -> Result<()> {
        let result = match self.is_quiet() {
            true => Ok(()),
            false => self.drain(),
        };
        self.shared().deferred.reclaim();
        Ok(result?)
    }

    /// Wait for all work, with the driver's own means.
    pub(crate) fn drain(&self) -> pinlane_driver::Result<()> {
        // What has not ended may come onto the stream behind the wait.
        let ended = self.inner.ended.load(Ordering::Acquire);
        self.driver().stream_synchronize(self.inner.handle)?;
        // An older wait of another thread may come later: then it is only less known.
        self.inner.done.store(ended, Ordering::Release);
        Ok(())
    }

    /// Whether it is known, without a question to the driver, that nothing is left to do.
    pub(crate) fn is_quiet(&self) -> bool {
        let done = self.inner.done.load(Ordering::Acquire);
        done == self.inner.begun.load(Ordering::Acquire) && !self.is_exposed()
    }

    /// Something is submitted from here on until the value is dropped.
    pub(crate) fn begin_submit(&self) -> SubmitGuard<'_> {
        self.inner.begun.fetch_add(1, Ordering::AcqRel);
        SubmitGuard(&self.inner.ended)
    }

    /// Whether others than this library may use it.
    pub(crate) fn is_exposed(&self) -> bool {
        self.inner.exposed.load(Ordering::Relaxed)
    }

    /// Whether all its work is done.
    pub fn is_idle(&self) -> Result<bool> {
        Ok(self.driver().stream_query(self.inner.handle)?)
    }

    /// Resolves when all work that the stream holds now is done.
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

    /// Let `event` fire when all work that the stream holds now is done.
    pub fn record(&self, event: &Event) -> Result<()> {
        event.belongs_to(&self.shared().core)?;
        let _guard = self.begin_submit();
        Ok(self
            .driver()
            .event_record(event.handle(), self.inner.handle)?)
    }

    /// Let later work of this stream start only after `event` has fired.
    pub fn wait(&self, event: &Event) -> Result<()> {
        event.belongs_to(&self.shared().core)?;
        let _guard = self.begin_submit();
        Ok(self
            .driver()
            .stream_wait_event(self.inner.handle, event.handle())?)
    }

    /// The driver's handle. From here on, others may do anything with the stream.
    pub(crate) fn expose(&self) -> u64 {
        self.inner.exposed.store(true, Ordering::Relaxed);
        self.inner.handle.raw()
    }

    /// Work that the books follow cannot be part of a graph: its fence would fire never or at once,
    /// and a ring is long refilled when the graph runs.
    pub(crate) fn refuse_capture(&self) -> Result<()> {
        // Only those who know its handle can capture it, and nobody can the default stream.
        let possible = self.inner.owned && self.is_exposed();
        if !possible || !self.driver().stream_is_capturing(self.inner.handle)? {
            return Ok(());
        }
        let error = pinlane_driver::Error::new(ErrorKind::Capturing, "submit")
            .with_detail("copy before the capture begins, or after it has ended");
        Err(Error::Driver(error))
    }

    pub(crate) fn handle(&self) -> StreamHandle {
        self.inner.handle
    }

    /// The right to submit, until it is dropped.
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

/// A submission under way.
pub(crate) struct SubmitGuard<'a>(&'a AtomicU64);

impl Drop for SubmitGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.owned {
            let core = &self.shared.core;
            // SAFETY: created for this stream, which was its only user and is gone.
            core.give_back(|driver| unsafe { driver.stream_destroy(self.handle) });
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream")
            .field(&self.inner.handle.raw())
            .finish()
    }
}

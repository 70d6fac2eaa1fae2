//! Streams: the order of work on the device.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::{self, ThreadId};

use pinlane_driver::{Driver, ErrorKind, StreamFlags, StreamHandle, StreamKind};

use crate::completion_future::Completed;
use crate::device::Shared;
use crate::driver_handles::{NON_BLOCKING, OwnStream, StreamRef};
use crate::sync::lock;
use crate::{Device, Error, Event, Result};

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
    origin: StreamOrigin,
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

/// Who owns a stream.
enum StreamOrigin {
    Own(OwnStream),
    /// The device's default stream, which the driver owns.
    Default,
    /// A stream of another library.
    Foreign(StreamHandle),
    /// The default stream of one thread. The same handle is another stream on every other thread.
    PerThread {
        handle: StreamHandle,
        thread: ThreadId,
        /// For work that several threads submit.
        side: OnceLock<Stream>,
    },
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
        Ok(Self::new(Arc::clone(shared), StreamOrigin::Own(own)))
    }

    pub(crate) fn default_of(shared: &Arc<Shared>) -> Self {
        Self::new(Arc::clone(shared), StreamOrigin::Default)
    }

    /// Uses a stream of another library, such as PyTorch's or CuPy's current stream: a `CUstream` as a
    /// number. 0 and 1 are the default stream, and 2 is the calling thread's own default stream, which only
    /// that thread can use.
    ///
    /// Work is ordered by the stream with everything that the other library submits to it. While it is being
    /// captured into a graph, calls that would submit to it are refused. A simulated device has no default streams
    /// of threads, and other numbers for its streams.
    ///
    /// # Safety
    /// The stream belongs to the primary context of `device`, and is not destroyed before the last clone of
    /// the result is dropped. No capture of it begins during a call here.
    pub unsafe fn from_raw(device: &Device, handle: u64) -> Self {
        let shared = Arc::clone(&device.shared);
        let kind = shared.core.driver.stream_kind(handle);
        // SAFETY: the caller's.
        let handle = unsafe { StreamHandle::from_raw(handle) };
        let origin = match kind {
            StreamKind::Default => StreamOrigin::Default,
            StreamKind::Created => StreamOrigin::Foreign(handle),
            StreamKind::PerThread => StreamOrigin::PerThread {
                handle,
                thread: thread::current().id(),
                side: OnceLock::new(),
            },
        };
        Self::new(shared, origin)
    }

    fn new(shared: Arc<Shared>, origin: StreamOrigin) -> Self {
        let (id, submit_order) = match &origin {
            // All handles to the default stream are the same stream.
            StreamOrigin::Default => (
                Shared::DEFAULT_STREAM_ID,
                Arc::clone(&shared.default_submit_order),
            ),
            _ => (Shared::next_stream_id(), Arc::default()),
        };
        Self {
            inner: Arc::new(Inner {
                exposed: AtomicBool::new(!matches!(origin, StreamOrigin::Own(_))),
                origin,
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
        self.check_thread()?;
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
        self.check_thread()?;
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
        self.check_thread()?;
        // An event of a capture would pull streams that wait for it into the graph.
        self.refuse_capture()?;
        let _guard = self.begin_submit();
        Ok(self.live().record(event.own())?)
    }

    /// Makes later work on this stream wait until `event` has fired.
    pub fn wait(&self, event: &Event) -> Result<()> {
        event.belongs_to(&self.shared().core)?;
        self.check_thread()?;
        // An event of a capture would pull streams that wait for it into the graph.
        self.refuse_capture()?;
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
        let possible = !matches!(self.inner.origin, StreamOrigin::Default) && self.is_exposed();
        if !possible || !self.live().is_capturing()? {
            return Ok(());
        }
        let error = pinlane_driver::Error::new(ErrorKind::Capturing, "submit")
            .with_detail("copy before the capture begins, or after it has ended");
        Err(Error::Driver(error))
    }

    /// Checks that the calling thread may use the stream.
    pub(crate) fn check_thread(&self) -> Result<()> {
        match &self.inner.origin {
            StreamOrigin::PerThread { thread, .. } if *thread != thread::current().id() => {
                Err(Error::WrongThread)
            }
            _ => Ok(()),
        }
    }

    /// A stream for work that several threads submit, if they cannot submit it to this one. The caller makes
    /// each wait for the other.
    pub(crate) fn side_stream(&self) -> Result<Option<&Self>> {
        let StreamOrigin::PerThread { side, .. } = &self.inner.origin else {
            return Ok(None);
        };
        if side.get().is_none() {
            let created = Self::create(self.shared(), NON_BLOCKING)?;
            side.get_or_init(|| created);
        }
        Ok(side.get())
    }

    /// Makes later work here wait for all work on `other` so far.
    pub(crate) fn follow(&self, other: &Self) -> Result<()> {
        let fence = other.submit(&[], |_, _| Ok(()))?;
        let _guard = self.begin_submit();
        Ok(self.live().wait_for(fence.event())?)
    }

    pub(crate) fn live(&self) -> StreamRef<'_> {
        let core = &self.inner.shared.core;
        match &self.inner.origin {
            StreamOrigin::Own(own) => own.live(),
            StreamOrigin::Default => StreamRef::default_of(core),
            StreamOrigin::Foreign(handle) | StreamOrigin::PerThread { handle, .. } => {
                // SAFETY: the caller of `from_raw` guarantees it.
                unsafe { StreamRef::new(core, *handle) }
            }
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

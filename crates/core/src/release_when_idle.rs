//! What other libraries may still use when it is dropped: released once the device has been idle.
//!
//! ```text
//!   Device::release_when_idle ── ReleaseQueue ──┬── the device's release thread: waits, drops, sleeps
//!                                               └── a request without room: waits and drops by itself
//! ```
//!
//! Work on unknown streams leaves no fence to wait for, so this waits for all work on the device. What is queued
//! keeps the device open. So the last handle of a device is never dropped with something in the queue, and its
//! shutdown need not wait for other libraries.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::device::Shared;
use crate::device_core::DeviceCore;
use crate::logging::log_error;
use crate::memory::PendingMemory;
use crate::signal_mask::without_signals;
use crate::sync::lock;
use crate::transfer_protocol::ReleaseQueue;
use crate::{Device, ErrorKind, Result};

/// How often a wait for the device that fails is tried again, and how long after the last time.
const ATTEMPTS: u32 = 50;
const RETRY_AFTER: Duration = Duration::from_millis(100);

thread_local! {
    /// Whether this thread is dropping what was queued. A destructor that needs memory must not wait for
    /// destructors: for those behind it on this thread, or for another thread that waits for it.
    static RELEASING: Cell<bool> = const { Cell::new(false) };
}

/// What is released once the device is idle, and the thread that does it.
pub(crate) struct IdleReleases {
    queue: ReleaseQueue<Queued>,
    /// Started for the first resource.
    thread: Mutex<Option<Thread>>,
    /// Whether anything was ever queued.
    used: AtomicBool,
    /// The device is closed.
    ended: AtomicBool,
}

struct Queued {
    resource: Box<dyn Send>,
    /// Dropped behind the resource.
    device: Arc<Shared>,
}

impl Default for IdleReleases {
    fn default() -> Self {
        Self {
            queue: ReleaseQueue::new(),
            thread: Mutex::new(None),
            used: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }
    }
}

impl IdleReleases {
    /// Number of resources that are not released yet.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }
}

impl Device {
    /// Drops `resource` once all work that was submitted to the GPU before this call is done, on any stream, by
    /// any library of the process. Returns at once: a thread of the device waits.
    ///
    /// For memory that other libraries use by its address, on streams that are not known here: a pinned buffer
    /// that PyTorch copies from, or device memory that was exported. Dropping it would give the memory to the
    /// next buffer while their work still uses it.
    ///
    /// ```
    /// # fn main() -> pinlane::Result<()> {
    /// # let device = pinlane::Device::sim("h200")?;
    /// let pinned = device.pinned::<f32>(1024)?;
    /// // … another library copies from `pinned.as_ptr()` on a stream of its own …
    /// device.release_when_idle(pinned);
    ///
    /// device.synchronize()?; // waits for it too
    /// assert_eq!(device.stats().parked, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A resource can be anything, such as a tuple of buffers. It is dropped on another thread: the device's, or
    /// one whose request for pinned or device memory would fail otherwise. Such a request waits for everything
    /// that was queued before it, so its caller must not hold a lock that the resource needs to be dropped. A
    /// panic of its destructor is ignored.
    ///
    /// The device stays open until then. If the device is lost, the resource is dropped, since nothing uses it
    /// any more. If the driver cannot wait, for instance while a stream is captured into a graph, the thread tries
    /// for 5 seconds and then leaks the resource. A forked child leaks what its parent's device is given. What is
    /// still queued when the process ends is left to the system.
    pub fn release_when_idle(&self, resource: impl Send + 'static) {
        let core = &self.shared.core;
        if core.process.is_parent() {
            // There is no thread, and one of the parent's may have held the locks.
            return std::mem::forget(resource);
        }
        core.releases.queue.push(Queued {
            resource: Box::new(resource),
            device: Arc::clone(&self.shared),
        });
        core.wake_release_thread();
    }
}

impl DeviceCore {
    /// If that starts no thread, what is queued stays there until the next try or the next request for memory.
    fn wake_release_thread(self: &Arc<Self>) {
        let mut thread = lock(&self.releases.thread);
        if let Some(thread) = &*thread {
            return thread.unpark();
        }
        if !self.releases.used.swap(true, Ordering::Relaxed) {
            let pending: Weak<Self> = Arc::downgrade(self);
            self.budget.may_wait_for(pending);
        }
        let core = Arc::clone(self);
        let builder = thread::Builder::new().name("pinlane-release".into());
        let started = without_signals(|| builder.spawn(move || core.release_until_ended()));
        *thread = started.ok().map(|handle| handle.thread().clone());
    }

    /// Ends the thread, because the device is closed.
    pub(crate) fn end_release_thread(&self) {
        let releases = &self.releases;
        releases.ended.store(true, Ordering::Release);
        if releases.used.load(Ordering::Relaxed) && !self.process.is_parent() {
            let thread = lock(&releases.thread).take();
            thread.inspect(Thread::unpark);
        }
    }

    /// The release thread.
    fn release_until_ended(&self) {
        let mut failures = 0;
        loop {
            if self.releases.len() == 0 {
                if self.releases.ended.load(Ordering::Acquire) {
                    return;
                }
                thread::park();
            } else if self.release_queued(failures == 0) {
                failures = 0;
            } else if failures + 1 < ATTEMPTS {
                failures += 1;
                thread::sleep(RETRY_AFTER);
            } else {
                failures = 0;
                self.leak_queued();
            }
        }
    }

    /// Waits for the device and drops what was queued before. Returns whether the wait worked.
    fn release_queued(&self, keep_error: bool) -> bool {
        let was_releasing = RELEASING.replace(true);
        let released = self.releases.queue.release(|| self.is_idle(keep_error));
        RELEASING.set(was_releasing);
        released
    }

    /// Waits for all work. Returns whether the device is done with it, or dead.
    fn is_idle(&self, keep_error: bool) -> bool {
        match catch_unwind(AssertUnwindSafe(|| self.driver.synchronize())) {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                let is_dead = error.is_fatal();
                if keep_error {
                    self.keep_stray(error);
                }
                is_dead
            }
            Err(panic) => {
                std::mem::forget(panic); // dropping it might panic, too
                false
            }
        }
    }

    /// Keeps the resources for good, but not the device.
    fn leak_queued(&self) {
        let leaked = self.releases.queue.give_up();
        log_error(format_args!(
            "the driver cannot tell when the device is idle; {} resources are leaked",
            leaked.len()
        ));
        for Queued { resource, device } in leaked {
            std::mem::forget(resource);
            // The shutdown may panic if the driver does; the panic hook has reported it.
            let closed = catch_unwind(AssertUnwindSafe(|| drop(device)));
            closed.unwrap_or_else(std::mem::forget);
        }
    }

    /// Makes an allocation of device memory, again if the device is full and something waits to be released.
    pub(crate) fn or_after_releases<T>(&self, allocate: impl Fn() -> Result<T>) -> Result<T> {
        match allocate() {
            Err(error) if error.kind() == ErrorKind::OutOfMemory && self.release_pending() => {
                allocate()
            }
            result => result,
        }
    }

    /// Waits until what is queued now is released. Returns `false` if nothing ever was, or if this thread may
    /// not wait.
    pub(crate) fn release_pending(&self) -> bool {
        let used = self.releases.used.load(Ordering::Relaxed);
        if !used || RELEASING.get() || self.process.is_parent() {
            return false;
        }
        self.release_queued(true);
        true
    }
}

impl PendingMemory for DeviceCore {
    fn release_pending(&self) -> bool {
        self.release_pending()
    }
}

impl fmt::Debug for IdleReleases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IdleReleases").field(&self.len()).finish()
    }
}

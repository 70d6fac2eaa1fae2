//! Host threads that work on one job and wait for each other. A simulated device has a clock for each of them, so
//! they must say when they wait for something other than the device. On a real one all of this is the standard library's.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, ScopedJoinHandle};

use pinlane_driver::{Driver, ThreadClocks};

use crate::Device;

/// The driver, if its time is simulated.
#[derive(Clone)]
struct Clocks(Option<Arc<dyn Driver>>);

impl fmt::Debug for Clocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let simulated = self.0.is_some();
        f.debug_tuple("Clocks").field(&simulated).finish()
    }
}

impl Clocks {
    fn of(device: &Device) -> Self {
        let driver = device.driver();
        Self(driver.thread_clocks().is_some().then(|| Arc::clone(driver)))
    }

    fn get(&self) -> Option<&dyn ThreadClocks> {
        self.0.as_ref()?.thread_clocks()
    }
}

/// Waits for something other than the device, with `wait`.
pub(crate) fn wait_elsewhere<R>(driver: &dyn Driver, wait: impl FnOnce() -> R) -> R {
    let Some(clocks) = driver.thread_clocks() else {
        return wait();
    };
    struct Away<'a>(&'a dyn ThreadClocks);

    impl Drop for Away<'_> {
        fn drop(&mut self) {
            self.0.set_away(false);
        }
    }

    clocks.set_away(true);
    let _away = Away(clocks);
    wait()
}

/// A thread that takes part in the clock until this is dropped.
#[derive(Debug)]
struct Participation {
    clocks: Clocks,
    number: Option<u64>,
}

impl Drop for Participation {
    fn drop(&mut self) {
        if let (Some(clocks), Some(number)) = (self.clocks.get(), self.number) {
            clocks.leave(number);
        }
    }
}

/// The threads of a job: the one that creates this, and those that it starts.
#[derive(Debug)]
pub struct HostThreads(Participation);

impl HostThreads {
    /// The calling thread begins a job on a device.
    #[must_use]
    pub fn begin(device: &Device) -> Self {
        let clocks = Clocks::of(device);
        let number = clocks.get().and_then(ThreadClocks::enter);
        Self(Participation { clocks, number })
    }

    /// A channel between two of the threads.
    #[must_use]
    pub fn channel<T>(&self) -> (Sender<T>, Receiver<T>) {
        let (sender, receiver) = mpsc::channel();
        let clocks = self.0.clocks.clone();
        let number = clocks.get().map(ThreadClocks::signal);
        let signal = Arc::new(Signal { clocks, number });
        let sender = Sender {
            inner: Some(sender),
            signal: Arc::clone(&signal),
        };
        let receiver = Receiver {
            inner: receiver,
            signal,
            closed: Cell::new(false),
        };
        (sender, receiver)
    }

    /// Starts a thread.
    ///
    /// # Errors
    /// That of the system, if it cannot.
    pub fn spawn<'scope, T: Send + 'scope>(
        &self,
        scope: &'scope thread::Scope<'scope, '_>,
        name: &str,
        work: impl FnOnce() -> T + Send + 'scope,
    ) -> io::Result<HostThread<'scope, T>> {
        let clocks = self.0.clocks.clone();
        let number = clocks.get().map(ThreadClocks::announce);
        let thread = Participation { clocks, number };
        let (ends, ended) = self.channel::<()>();
        let run = move || {
            let thread = thread;
            if let (Some(clocks), Some(number)) = (thread.clocks.get(), thread.number) {
                clocks.start(number);
            }
            let _ends = ends; // dropped before `thread`, also by a panic
            work()
        };
        let builder = thread::Builder::new().name(name.to_owned());
        let handle = Some(builder.spawn_scoped(scope, run)?);
        Ok(HostThread { handle, ended })
    }
}

/// A thread of a job. Dropping it waits for its end by the clock, as the scope does in real time.
#[derive(Debug)]
pub struct HostThread<'scope, T> {
    /// Taken by `join`.
    handle: Option<ScopedJoinHandle<'scope, T>>,
    ended: Receiver<()>,
}

impl<T> HostThread<'_, T> {
    /// Waits for its end. The panic of a thread is an error.
    ///
    /// # Errors
    /// What the thread panicked with.
    pub fn join(mut self) -> thread::Result<T> {
        self.ended.signal.take();
        let handle = self.handle.take().expect("joined once");
        handle.join()
    }
}

impl<T> Drop for HostThread<'_, T> {
    fn drop(&mut self) {
        if self.handle.is_some() {
            self.ended.signal.take();
        }
    }
}

/// How often a channel was used and not received from.
#[derive(Debug)]
struct Signal {
    clocks: Clocks,
    number: Option<u64>,
}

impl Signal {
    fn post(&self) {
        if let (Some(clocks), Some(number)) = (self.clocks.get(), self.number) {
            clocks.post(number);
        }
    }

    fn take(&self) {
        if let (Some(clocks), Some(number)) = (self.clocks.get(), self.number) {
            clocks.take(number);
        }
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        if let (Some(clocks), Some(number)) = (self.clocks.get(), self.number) {
            clocks.forget(number);
        }
    }
}

/// The sender of [`HostThreads::channel`].
#[derive(Debug)]
pub struct Sender<T> {
    /// `None` once it is dropped.
    inner: Option<mpsc::Sender<T>>,
    signal: Arc<Signal>,
}

impl<T> Sender<T> {
    /// Sends a value.
    ///
    /// # Errors
    /// Returns the value if the receiver is gone.
    pub fn send(&self, value: T) -> Result<(), mpsc::SendError<T>> {
        let inner = self.inner.as_ref().expect("only a drop takes it");
        inner.send(value)?;
        self.signal.post();
        Ok(())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.inner = None;
        self.signal.post(); // the receiver waits for this too
    }
}

/// The receiver of [`HostThreads::channel`].
#[derive(Debug)]
pub struct Receiver<T> {
    inner: mpsc::Receiver<T>,
    signal: Arc<Signal>,
    /// The sender is gone, and its last signal taken.
    closed: Cell<bool>,
}

impl<T> Receiver<T> {
    /// The next value; `None` once the sender is gone.
    pub fn recv(&self) -> Option<T> {
        if !self.closed.get() {
            self.signal.take();
        }
        let received = self.inner.recv().ok();
        self.closed.set(received.is_none());
        received
    }
}

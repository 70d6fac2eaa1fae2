//! The clocks of host threads on a simulated device.

/// Each host thread that takes part in a run has a clock of its own, so that threads take virtual time at the
/// same time. The device never gets ahead of a thread that runs and may still submit work.
///
/// A thread that takes part and blocks on another one says so by a signal: [`take`](Self::take) before it receives,
/// [`post`](Self::post) after the other one has sent. Threads that do not take part share the device's clock, and so
/// does a thread that neither calls the driver nor blocks here for long: nothing waits for it for good.
pub trait ThreadClocks: Send + Sync {
    /// The calling thread takes part until [`leave`](Self::leave). `None` if it does already.
    fn enter(&self) -> Option<u64>;

    /// Whether the calling thread takes part.
    fn takes_part(&self) -> bool;

    /// A thread that is about to start takes part, from the caller's time on.
    fn announce(&self) -> u64;

    /// The calling thread is the announced one.
    fn start(&self, thread: u64);

    /// A thread no longer takes part. Any thread may say so.
    fn leave(&self, thread: u64);

    /// The caller is about to ask whether work is done: waits until the answer no longer depends on how fast other
    /// threads are in real time. It must hold no lock that they need.
    fn reach(&self);

    /// The caller blocks on something that the clocks do not know, or no longer does.
    fn set_away(&self, away: bool);

    /// Creates a signal.
    fn signal(&self) -> u64;

    /// Counts a signal up, at the caller's time.
    fn post(&self, signal: u64);

    /// Counts a signal down: waits until it was posted. Returns at once if the caller does not take part.
    fn take(&self, signal: u64);

    /// Forgets a signal that is no longer used.
    fn forget(&self, signal: u64);
}

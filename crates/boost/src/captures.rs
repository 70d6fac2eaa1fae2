//! Graph captures. While one is under way anywhere in the process, every call is the driver's own: ours could become part
//! of the graph, or end the capture.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::calls::SUCCESS;

/// Captures that have begun and not ended.
static CAPTURES: AtomicUsize = AtomicUsize::new(0);

/// Copies on the express lane.
static COPIES: AtomicUsize = AtomicUsize::new(0);

/// How long the begin of a capture waits for copies of other threads. One of them may wait for this thread.
const PATIENCE: Duration = Duration::from_secs(1);

/// Permission to call the driver, until it is dropped.
pub(crate) struct NoCapture(());

impl NoCapture {
    /// `None` while a stream is being captured.
    pub(crate) fn check() -> Option<Self> {
        // Counted before the look at captures, as those are before the look at copies: one of them sees the other.
        COPIES.fetch_add(1, Ordering::SeqCst);
        let permission = Self(());
        (CAPTURES.load(Ordering::SeqCst) == 0).then_some(permission)
    }
}

impl Drop for NoCapture {
    fn drop(&mut self) {
        COPIES.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Begins a capture once no copy is on the express lane.
pub(crate) fn begin(plain: impl FnOnce() -> u32) -> u32 {
    CAPTURES.fetch_add(1, Ordering::SeqCst);
    let start = Instant::now();
    while COPIES.load(Ordering::SeqCst) > 0 && start.elapsed() < PATIENCE {
        thread::sleep(Duration::from_micros(50));
    }
    let code = plain();
    if code != SUCCESS {
        CAPTURES.fetch_sub(1, Ordering::SeqCst);
    }
    code
}

/// Ends a capture. One that was invalidated, or whose streams were not joined, ends with an error. After any other error
/// it may go on; if it does not, calls stay plain.
pub(crate) fn end(plain: impl FnOnce() -> u32) -> u32 {
    const INVALIDATED: u32 = 901;
    const UNJOINED: u32 = 904;
    let code = plain();
    if [SUCCESS, INVALIDATED, UNJOINED].contains(&code) {
        let less = |captures: usize| captures.checked_sub(1);
        let _ = CAPTURES.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
    }
    code
}

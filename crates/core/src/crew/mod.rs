//! The crew: persistent threads that lend a hand. Pinning, staging and converting are all work that
//! several threads do on one thing for a few microseconds to milliseconds; starting threads for each
//! would cost more than it gains.
//!
//! Whoever has work calls [`together`]: it does the work itself, and as many of the crew as are free
//! join in. So work goes on even when the whole crew is busy, and a forked child, which has no crew,
//! simply works alone. At no time do more threads work than the process has CPUs: where several
//! callers have work at once, the crew is spread evenly over them.
//!
//! ```text
//!   job    work that a caller has posted: done by the caller and by helpers, who are counted in and out
//!   seat   a helper's place at a job, and who is needed elsewhere
//!   lane   the threads: they watch for work, take a seat, or sleep
//!   fork   whether the threads are those of a parent process
//! ```

mod fork;
mod job;
mod lane;
mod seat;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

use self::fork::{is_forked, watch_for_forks};
use self::job::Job;
use self::lane::WAKES;
pub(crate) use self::seat::Seat;

/// Work that several threads do at once. Each calls it once and returns when nothing is left to do,
/// or when its seat says that it is needed elsewhere.
pub(crate) type Work<'a> = dyn Fn(&Seat<'_>) + Sync + 'a;

/// No more than this many threads, however many CPUs there are: memory is saturated long before.
const THREADS_AT_MOST: usize = 31;

/// Do `work` on this thread and on up to `helpers` of the crew's. Returns when all have returned; a
/// panic of any of them goes on here.
pub(crate) fn together(helpers: usize, work: &Work<'_>) {
    let crew = Crew::global();
    if helpers == 0 || crew.cpus == 1 || is_forked() {
        work(&Seat::of_caller());
        return;
    }
    crew.together(helpers, work);
}

/// How many helpers this process may have: its CPUs (affinity and cgroup quota) but for the caller's.
pub(crate) fn helpers_at_most() -> usize {
    (Crew::global().cpus - 1).min(THREADS_AT_MOST)
}

/// How many threads of this process can work at once: its CPUs, up to a limit.
pub fn cpus() -> usize {
    helpers_at_most() + 1
}

/// Whether some of the crew would join at once. Those asleep take some 50 µs to come.
pub(crate) fn is_awake() -> bool {
    Crew::global().watching.load(Ordering::Relaxed) > 0
}

/// There will be work soon: wake some, so that they are there when it is.
pub(crate) fn rouse() {
    if !is_forked() {
        Crew::global().wake(WAKES);
    }
}

/// How many callers have work for the crew now.
pub(crate) fn callers() -> usize {
    Crew::global().callers.load(Ordering::Relaxed)
}

struct Crew {
    cpus: usize,
    state: Mutex<State>,
    /// Free seats of all jobs, readable without the lock.
    wanted: AtomicUsize,
    /// Jobs posted so far. A change tells lanes to see whether they are needed elsewhere.
    posted: AtomicUsize,
    /// Jobs that are open.
    callers: AtomicUsize,
    /// Threads that watch for work, or have some.
    watching: AtomicUsize,
}

#[derive(Default)]
struct State {
    jobs: Vec<Job>,
    sleepers: Vec<Thread>,
    threads: usize,
    next_id: usize,
}

impl Crew {
    fn global() -> &'static Self {
        static CREW: OnceLock<Crew> = OnceLock::new();
        CREW.get_or_init(|| {
            watch_for_forks();
            Self {
                // Affinity mask and cgroup quota, not the machine's count.
                cpus: std::thread::available_parallelism().map_or(1, usize::from),
                state: Mutex::default(),
                wanted: AtomicUsize::new(0),
                posted: AtomicUsize::new(0),
                callers: AtomicUsize::new(0),
                watching: AtomicUsize::new(0),
            }
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

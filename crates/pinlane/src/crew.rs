//! The crew: persistent threads that lend a hand. Pinning, staging and converting are all work that
//! several threads do on one thing for a few microseconds to milliseconds; starting threads for each
//! would cost more than it gains.
//!
//! Whoever has work calls [`together`]: it does the work itself, and as many of the crew as are free
//! join in. So work goes on even when the whole crew is busy, and a forked child, which has no crew,
//! simply works alone. At no time do more threads work than the process has CPUs: where several
//! callers have work at once, the crew is spread evenly over them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::sync::pause;

/// Work that several threads do at once. Each calls it once and returns when nothing is left to do,
/// or when its seat says that it is needed elsewhere.
pub(crate) type Work<'a> = dyn Fn(&Seat<'_>) + Sync + 'a;

/// No more than this many threads, however many CPUs there are: memory is saturated long before.
const THREADS_AT_MOST: usize = 31;

/// How long an idle thread watches for work before it sleeps. Waking a sleeper takes some 50 µs,
/// as long as staging a few hundred KiB.
const WATCH: Duration = Duration::from_micros(200);

/// Do `work` on this thread and on up to `helpers` of the crew's. Returns when all have returned; a
/// panic of any of them goes on here.
pub(crate) fn together(helpers: usize, work: &Work<'_>) {
    let crew = Crew::global();
    if helpers == 0 || crew.cpus == 1 || is_forked() {
        work(&Seat { job: None });
        return;
    }
    crew.together(helpers, work);
}

/// How many helpers this process may have: its CPUs (affinity and cgroup quota) but for the caller's.
pub(crate) fn helpers_at_most() -> usize {
    (Crew::global().cpus - 1).min(THREADS_AT_MOST)
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
}

#[derive(Default)]
struct State {
    jobs: Vec<Job>,
    sleepers: Vec<Thread>,
    threads: usize,
    next_id: usize,
}

struct Job {
    id: usize,
    work: SharedWork,
    /// Helpers that may still join.
    free: usize,
    gate: Arc<Gate>,
}

/// Work of a caller that waits until all helpers have left it.
#[derive(Clone, Copy)]
struct SharedWork(*const Work<'static>);

// SAFETY: the work is `Sync`, and lives until the gate is empty: `Crew::together` sees to that.
unsafe impl Send for SharedWork {}

/// Where helpers of a job are counted in and out.
struct Gate {
    inside: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// A helper's place at a job.
pub(crate) struct Seat<'a> {
    /// `None` for the caller, who stays to the end.
    job: Option<(&'a Crew, usize, AtomicUsize)>,
}

impl Seat<'_> {
    /// Whether to go on with this work, to be asked between pieces of it. After a `false` the
    /// helper must return.
    pub(crate) fn may_stay(&self) -> bool {
        let Some((crew, id, seen)) = &self.job else {
            return true;
        };
        let posted = crew.posted.load(Ordering::Relaxed);
        if posted == seen.load(Ordering::Relaxed) {
            return true;
        }
        seen.store(posted, Ordering::Relaxed);
        !crew.needed_elsewhere(*id)
    }
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
            }
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn together(&'static self, helpers: usize, work: &Work<'_>) {
        let gate = Arc::new(Gate {
            inside: AtomicUsize::new(0),
            panic: Mutex::new(None),
        });
        // SAFETY: only the lifetime changes. `Posted` ends the job and waits until the gate is
        // empty before this function is left, by return or by panic, so nobody uses it longer.
        let work_ptr = unsafe { std::mem::transmute::<&Work<'_>, &Work<'static>>(work) };
        let posted = self.post(helpers, SharedWork(work_ptr), &gate);
        work(&Seat { job: None });
        drop(posted);
        let panic = gate
            .panic
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    fn post(&'static self, helpers: usize, work: SharedWork, gate: &Arc<Gate>) -> Posted {
        let mut state = self.state();
        let id = state.next_id;
        state.next_id += 1;
        state.jobs.push(Job {
            id,
            work,
            free: helpers,
            gate: Arc::clone(gate),
        });
        self.callers.store(state.jobs.len(), Ordering::Relaxed);
        self.wanted.fetch_add(helpers, Ordering::SeqCst);
        self.posted.fetch_add(1, Ordering::Relaxed);
        let threads_wanted = helpers.min(helpers_at_most());
        while state.threads < threads_wanted && self.start_thread(state.threads) {
            state.threads += 1;
        }
        drop(state);
        self.wake_two();
        Posted {
            crew: self,
            id,
            gate: Arc::clone(gate),
        }
    }

    /// Threads are started when they are first wanted. Whether it could be.
    fn start_thread(&'static self, number: usize) -> bool {
        std::thread::Builder::new()
            .name(format!("pinlane-lane-{number}"))
            .spawn(move || self.lane())
            .is_ok()
    }

    /// Everyone who wakes wakes two more while there are free seats: a chain of single wakes would
    /// take the caller as long as the work.
    fn wake_two(&self) {
        if self.wanted.load(Ordering::SeqCst) == 0 {
            return;
        }
        let woken = {
            let mut state = self.state();
            [state.sleepers.pop(), state.sleepers.pop()]
        };
        for thread in woken.into_iter().flatten() {
            thread.unpark();
        }
    }

    /// A thread's life.
    fn lane(&self) {
        let mut idle_since = Instant::now();
        loop {
            if self.wanted.load(Ordering::SeqCst) > 0
                && let Some((id, work, gate)) = self.take_seat()
            {
                self.wake_two();
                self.help(id, work, &gate);
                idle_since = Instant::now();
            } else if idle_since.elapsed() < WATCH {
                for _ in 0..16 {
                    std::hint::spin_loop();
                }
            } else {
                self.sleep();
                idle_since = Instant::now();
            }
        }
    }

    fn sleep(&self) {
        self.state().sleepers.push(std::thread::current());
        // A job may have been posted before we lay down; whoever posts later wakes us.
        if self.wanted.load(Ordering::SeqCst) == 0 || !self.has_room() {
            std::thread::park();
        }
        let me = std::thread::current().id();
        self.state().sleepers.retain(|thread| thread.id() != me);
    }

    /// Callers work, too: they and the helpers together get the CPUs.
    fn room(&self, state: &State) -> usize {
        let inside: usize = state.jobs.iter().map(Job::inside).sum();
        self.cpus.saturating_sub(state.jobs.len() + inside)
    }

    fn has_room(&self) -> bool {
        let state = self.state();
        self.room(&state) > 0
    }

    /// A seat at the job that has the fewest helpers.
    fn take_seat(&self) -> Option<(usize, SharedWork, Arc<Gate>)> {
        let mut state = self.state();
        if self.room(&state) == 0 {
            return None;
        }
        let open = state.jobs.iter_mut().filter(|job| job.free > 0);
        let job = open.min_by_key(|job| job.inside())?;
        job.free -= 1;
        job.gate.inside.fetch_add(1, Ordering::Relaxed);
        self.wanted.fetch_sub(1, Ordering::SeqCst);
        Some((job.id, job.work, Arc::clone(&job.gate)))
    }

    fn help(&self, id: usize, work: SharedWork, gate: &Gate) {
        let seen = AtomicUsize::new(self.posted.load(Ordering::Relaxed));
        let seat = Seat {
            job: Some((self, id, seen)),
        };
        // SAFETY: this thread is counted inside, so the caller still waits and the work lives.
        let work = unsafe { &*work.0 };
        let helped = catch_unwind(AssertUnwindSafe(|| work(&seat)));
        if let Err(panic) = helped {
            let mut first = gate.panic.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(panic);
        }
        gate.inside.fetch_sub(1, Ordering::Release);
    }

    /// Whether a helper of job `id` should go: more work than CPUs, or another job has far fewer
    /// helpers. Its seat is then free again.
    fn needed_elsewhere(&self, id: usize) -> bool {
        let mut state = self.state();
        let callers = state.jobs.len();
        let inside_all: usize = state.jobs.iter().map(Job::inside).sum();
        let Some(mine) = state.jobs.iter().find(|job| job.id == id).map(Job::inside) else {
            return false; // the job is ending anyway
        };
        let crowded = callers + inside_all > self.cpus;
        let poorer = |job: &Job| job.free > 0 && job.inside() + 1 < mine;
        let most = state.jobs.iter().all(|job| job.inside() <= mine);
        if !(crowded && most && mine > 0 || state.jobs.iter().any(poorer)) {
            return false;
        }
        if let Some(job) = state.jobs.iter_mut().find(|job| job.id == id) {
            job.free += 1;
            self.wanted.fetch_add(1, Ordering::SeqCst);
        }
        true
    }
}

impl Job {
    fn inside(&self) -> usize {
        self.gate.inside.load(Ordering::Relaxed)
    }
}

/// An open job. Dropping it closes the job and waits until all helpers have left.
struct Posted {
    crew: &'static Crew,
    id: usize,
    gate: Arc<Gate>,
}

impl Drop for Posted {
    fn drop(&mut self) {
        let mut state = self.crew.state();
        if let Some(at) = state.jobs.iter().position(|job| job.id == self.id) {
            let job = state.jobs.swap_remove(at);
            self.crew.wanted.fetch_sub(job.free, Ordering::SeqCst);
        }
        self.crew.callers.store(state.jobs.len(), Ordering::Relaxed);
        drop(state);
        let mut spins = 0;
        while self.gate.inside.load(Ordering::Acquire) > 0 {
            pause(&mut spins);
        }
        // Helpers may be free for jobs that had no room before.
        self.crew.wake_two();
    }
}

static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether this process was forked from one that had a crew: its threads are not here.
fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

fn watch_for_forks() {
    extern "C" fn note_child() {
        FORKED.store(true, Ordering::Relaxed);
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if cfg!(miri) {
            return;
        }
        // SAFETY: the handler only stores to an atomic, which is allowed after a fork.
        unsafe { libc::pthread_atfork(None, None, Some(note_child)) };
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_done_once_and_nobody_is_inside_afterwards() {
        for _ in 0..200 {
            let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
            together(3, &|seat| {
                while seat.may_stay() && next.fetch_add(1, Ordering::Relaxed) < 100 {
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
            // Those who left early gave their claim up only after it was refused.
            assert!(done.load(Ordering::Relaxed) == 100);
        }
    }

    #[test]
    fn many_callers_at_once_all_finish() {
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let sum = AtomicUsize::new(0);
                        let next = AtomicUsize::new(0);
                        together(4, &|seat| {
                            while seat.may_stay() {
                                let item = next.fetch_add(1, Ordering::Relaxed);
                                if item >= 64 {
                                    return;
                                }
                                sum.fetch_add(item, Ordering::Relaxed);
                            }
                        });
                        assert_eq!(sum.load(Ordering::Relaxed), 63 * 64 / 2);
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_of_a_helper_or_of_the_caller_reaches_the_caller() {
        let caught = catch_unwind(|| together(2, &|_| panic!("on purpose")));
        assert!(caught.is_err());
        // The crew goes on.
        let done = AtomicUsize::new(0);
        together(2, &|_| {
            done.fetch_add(1, Ordering::Relaxed);
        });
        assert!(done.load(Ordering::Relaxed) >= 1);
    }
}

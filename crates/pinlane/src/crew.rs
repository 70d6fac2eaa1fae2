//! The crew: persistent threads that lend a hand. Pinning, staging and converting are all work that
//! several threads do on one thing for a few microseconds to milliseconds; starting threads for each
//! would cost more than it gains.
//!
//! Whoever has work calls [`together`]: it does the work itself, and as many of the crew as are free
//! join in. So work goes on even when the whole crew is busy, and a forked child, which has no crew,
//! simply works alone. At no time do more threads work than the process has CPUs: where several
//! callers have work at once, the crew is spread evenly over them.

use std::any::Any;
use std::cell::Cell;
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
const WATCH: Duration = Duration::from_micros(300);

/// Sleepers that each caller, and everyone who was woken, wakes. One call takes a few microseconds,
/// but those woken come only after some 50.
const WAKES: usize = 4;

/// Do `work` on this thread and on up to `helpers` of the crew's. Returns when all have returned; a
/// panic of any of them goes on here.
pub(crate) fn together(helpers: usize, work: &Work<'_>) {
    let crew = Crew::global();
    if helpers == 0 || crew.cpus == 1 || is_forked() {
        work(&Seat { helper: None });
        return;
    }
    crew.together(helpers, work);
}

/// How many helpers this process may have: its CPUs (affinity and cgroup quota) but for the caller's.
pub(crate) fn helpers_at_most() -> usize {
    (Crew::global().cpus - 1).min(THREADS_AT_MOST)
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

struct Job {
    id: usize,
    work: SharedWork,
    /// Helpers that may still join.
    free: usize,
    /// Helpers that work on it and have not been told to go.
    working: usize,
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
    helper: Option<Helper<'a>>,
}

struct Helper<'a> {
    crew: &'a Crew,
    job: usize,
    /// Jobs that had been posted when it was last seen whether it is needed elsewhere.
    seen: Cell<usize>,
    sent_away: Cell<bool>,
}

impl Seat<'_> {
    /// Whether to go on with this work, to be asked between pieces of it. After a `false` the
    /// helper must return.
    pub(crate) fn may_stay(&self) -> bool {
        let Some(helper) = &self.helper else {
            return true;
        };
        let posted = helper.crew.posted.load(Ordering::Relaxed);
        if helper.seen.replace(posted) != posted {
            let sent_away = helper.crew.needed_elsewhere(helper.job);
            helper.sent_away.set(sent_away);
        }
        !helper.sent_away.get()
    }

    fn was_sent_away(&self) -> bool {
        let helper = self.helper.as_ref();
        helper.is_some_and(|helper| helper.sent_away.get())
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
                watching: AtomicUsize::new(0),
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
        work(&Seat { helper: None });
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
            working: 0,
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
        self.wake_some();
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

    /// Wake some for the free seats. Everyone who wakes does the same: for one alone it would take
    /// as long as the work.
    fn wake_some(&self) {
        self.wake(self.wanted.load(Ordering::SeqCst).min(WAKES));
    }

    fn wake(&self, threads: usize) {
        for _ in 0..threads {
            let sleeper = self.state().sleepers.pop();
            match sleeper {
                Some(thread) => thread.unpark(),
                None => return,
            }
        }
    }

    /// A thread's life.
    fn lane(&self) {
        let mut idle_since = Instant::now();
        self.watching.fetch_add(1, Ordering::Relaxed);
        loop {
            if self.wanted.load(Ordering::SeqCst) > 0
                && let Some((id, work, gate)) = self.take_seat()
            {
                self.wake_some();
                self.help(id, work, &gate);
                idle_since = Instant::now();
            } else if idle_since.elapsed() < WATCH {
                for _ in 0..16 {
                    std::hint::spin_loop();
                }
            } else {
                self.watching.fetch_sub(1, Ordering::Relaxed);
                self.sleep();
                self.watching.fetch_add(1, Ordering::Relaxed);
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
        let working: usize = state.jobs.iter().map(|job| job.working).sum();
        self.cpus.saturating_sub(state.jobs.len() + working)
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
        let job = open.min_by_key(|job| job.working)?;
        job.free -= 1;
        job.working += 1;
        job.gate.inside.fetch_add(1, Ordering::Relaxed);
        self.wanted.fetch_sub(1, Ordering::SeqCst);
        Some((job.id, job.work, Arc::clone(&job.gate)))
    }

    fn help(&self, id: usize, work: SharedWork, gate: &Gate) {
        let seat = Seat {
            helper: Some(Helper {
                crew: self,
                job: id,
                seen: Cell::new(self.posted.load(Ordering::Relaxed)),
                sent_away: Cell::new(false),
            }),
        };
        // SAFETY: this thread is counted inside, so the caller still waits and the work lives.
        let work = unsafe { &*work.0 };
        let helped = catch_unwind(AssertUnwindSafe(|| work(&seat)));
        if let Err(panic) = helped {
            let mut first = gate.panic.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(panic);
        }
        if !seat.was_sent_away() {
            let mut state = self.state();
            if let Some(job) = state.jobs.iter_mut().find(|job| job.id == id) {
                job.working -= 1;
            }
        }
        gate.inside.fetch_sub(1, Ordering::Release);
    }

    /// Whether a helper of job `id` should go: there are more threads at work than CPUs, or another
    /// job has far fewer helpers. Its seat is then free again.
    fn needed_elsewhere(&self, id: usize) -> bool {
        let mut state = self.state();
        let working: usize = state.jobs.iter().map(|job| job.working).sum();
        let crowded = state.jobs.len() + working > self.cpus;
        let most = state.jobs.iter().map(|job| job.working).max();
        let least = state.jobs.iter().filter(|job| job.free > 0);
        let least = least.map(|job| job.working).min();
        let Some(job) = state.jobs.iter_mut().find(|job| job.id == id) else {
            return false; // it is ending anyway
        };
        let rich = crowded && Some(job.working) == most;
        if !rich && least.is_none_or(|least| least + 1 >= job.working) {
            return false;
        }
        job.free += 1;
        job.working -= 1;
        self.wanted.fetch_add(1, Ordering::SeqCst);
        true
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
        self.crew.wake_some();
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
        for _ in 0..if cfg!(miri) { 5 } else { 200 } {
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
                    for _ in 0..if cfg!(miri) { 2 } else { 50 } {
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

//! Persistent threads that help with short parallel work: pinning, staging, converting.
//!
//! [`run`] does the work on the calling thread, and idle helpers join in. The caller never waits for
//! a helper to become free, and a forked child, which has no helper threads, works alone. Callers
//! and helpers together never use more threads than the process has CPUs; several callers share
//! the helpers evenly.
//!
//! ```text
//!   run ── HelperPool::post ── Job ── HelperTicket   one for each helper that works on the job
//!                               └──── Gate           counts helpers in and out
//! ```

#[cfg(test)]
mod tests;

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::fork::Process;
use crate::signal_mask::without_signals;
use crate::sync::{lock, wait_until};
use crate::unwind::on_unwind;

/// Work that several threads do at once. Each calls it once and returns when nothing is left to do,
/// or when its ticket has expired.
pub(crate) type Work<'a> = dyn Fn(&HelperTicket<'_>) + Sync + 'a;

/// More threads than this do not help, however many CPUs there are: memory is saturated long before.
const THREADS_AT_MOST: usize = 31;

/// How long an idle thread spins for work before it sleeps. Waking it takes some 50 µs, as long as
/// staging a few hundred KiB.
const SPIN_TIME: Duration = Duration::from_micros(300);

/// How long after their last work helpers, and their CPUs, are fast asleep.
const FALL_ASLEEP_TIME: Duration = Duration::from_millis(4);

/// Sleepers that each caller and each woken helper wakes. One call takes a few microseconds, but
/// the woken threads arrive only after some 50.
const WAKES: usize = 4;

/// Runs `work` on this thread and on up to `helpers` helper threads. Returns when all have returned,
/// and resumes the panic if one of them panicked.
pub(crate) fn run(helpers: usize, work: &Work<'_>) {
    let pool = HelperPool::global();
    if helpers == 0 || pool.cpus == 1 || pool.process.is_parent() {
        work(&HelperTicket(None));
        return;
    }
    pool.run(helpers, work);
}

/// The most helpers that one call can have: the CPUs of this process (affinity and cgroup quota),
/// less the caller's.
pub(crate) fn helpers_at_most() -> usize {
    HelperPool::global().threads_at_most()
}

/// How many threads of this process can work at once: its CPUs, up to a limit.
pub fn cpus() -> usize {
    helpers_at_most() + 1
}

/// How soon helpers would join.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Readiness {
    /// At once.
    Awake,
    /// After some 50 µs.
    Asleep,
    /// After 100 µs or more: they have not worked for so long that their CPUs sleep, too.
    FastAsleep,
}

/// How soon helpers would join now. If they sleep and this is asked often, wakes them for the next
/// caller.
pub(crate) fn readiness() -> Readiness {
    HelperPool::global().readiness()
}

/// Wakes some helpers for work that is about to be posted, or starts them.
pub(crate) fn wake() {
    let pool = HelperPool::global();
    if !pool.process.is_parent() {
        pool.wake_or_start();
    }
}

/// How many callers have work for helpers now.
pub(crate) fn callers() -> usize {
    HelperPool::global().callers.load(Ordering::Relaxed)
}

/// The helper threads of this process, and their jobs.
struct HelperPool {
    /// Its threads do not exist in forked children.
    process: Process,
    cpus: usize,
    started: Instant,
    /// When the last job was closed, and when somebody last found all helpers asleep: nanoseconds
    /// since the start, 0 if never.
    worked_ns: AtomicU64,
    asked_ns: AtomicU64,
    state: Mutex<State>,
    /// Free places of all jobs, readable without the lock.
    wanted: AtomicUsize,
    /// Jobs posted so far. When it changes, helpers check whether their tickets have expired.
    posted: AtomicUsize,
    /// Open jobs.
    callers: AtomicUsize,
    /// Threads that spin for work or have some.
    awake: AtomicUsize,
}

#[derive(Default)]
struct State {
    jobs: Vec<Job>,
    sleepers: Vec<Thread>,
    threads: usize,
    next_id: usize,
}

/// Work that a caller has posted.
struct Job {
    id: usize,
    work: SharedWork,
    /// Helpers that may still join.
    free: usize,
    /// Helpers whose tickets are valid.
    working: usize,
    gate: Arc<Gate>,
}

/// Work of a caller that waits until all helpers have left.
#[derive(Clone, Copy)]
struct SharedWork(*const Work<'static>);

// SAFETY: the work is `Sync`, and outlives its helpers: `HelperPool::run` waits for them.
unsafe impl Send for SharedWork {}

/// Counts the helpers of a job in and out.
#[derive(Default)]
struct Gate {
    inside: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl HelperPool {
    fn global() -> &'static Self {
        static POOL: OnceLock<HelperPool> = OnceLock::new();
        POOL.get_or_init(|| {
            // Affinity mask and cgroup quota, not the machine's count.
            Self::new(std::thread::available_parallelism().map_or(1, usize::from))
        })
    }

    fn new(cpus: usize) -> Self {
        Self {
            process: Process::current(),
            cpus,
            started: Instant::now(),
            worked_ns: AtomicU64::new(0),
            asked_ns: AtomicU64::new(0),
            state: Mutex::default(),
            wanted: AtomicUsize::new(0),
            posted: AtomicUsize::new(0),
            callers: AtomicUsize::new(0),
            awake: AtomicUsize::new(0),
        }
    }

    fn threads_at_most(&self) -> usize {
        (self.cpus - 1).min(THREADS_AT_MOST)
    }

    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    fn readiness(&'static self) -> Readiness {
        if self.awake.load(Ordering::Relaxed) > 0 {
            return Readiness::Awake;
        }
        let now_ns = self.now_ns();
        let was_within = |time: Duration, last_ns: u64| {
            last_ns > 0 && u128::from(now_ns.saturating_sub(last_ns)) < time.as_nanos()
        };
        let asked_ns = self.asked_ns.swap(now_ns, Ordering::Relaxed);
        if was_within(SPIN_TIME, asked_ns) && !self.process.is_parent() {
            self.wake_or_start();
        }
        match was_within(FALL_ASLEEP_TIME, self.worked_ns.load(Ordering::Relaxed)) {
            true => Readiness::Asleep,
            false => Readiness::FastAsleep,
        }
    }

    fn wake_or_start(&'static self) {
        self.start_threads(&mut lock(&self.state), WAKES);
        self.wake(WAKES);
    }

    fn run(&'static self, helpers: usize, work: &Work<'_>) {
        let gate = Arc::new(Gate::default());
        // SAFETY: only the lifetime changes. `close` waits until the gate is empty before this
        // function ends, by return or by panic.
        let work_ptr = unsafe { std::mem::transmute::<&Work<'_>, &Work<'static>>(work) };
        let id = self.post(helpers, SharedWork(work_ptr), &gate);
        on_unwind(|| self.close(id, &gate), || work(&HelperTicket(None)));
        self.close(id, &gate);
        let panic = lock(&gate.panic).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Posts a job and returns its number.
    fn post(&'static self, helpers: usize, work: SharedWork, gate: &Arc<Gate>) -> usize {
        let mut state = lock(&self.state);
        self.start_threads(&mut state, helpers);
        // Nothing below panics: the caller closes a job only once it has its number.
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
        drop(state);
        self.wake_some();
        id
    }

    /// Closes a job and waits until all helpers have left.
    fn close(&self, id: usize, gate: &Gate) {
        let mut state = lock(&self.state);
        if let Some(at) = state.jobs.iter().position(|job| job.id == id) {
            let job = state.jobs.swap_remove(at);
            self.wanted.fetch_sub(job.free, Ordering::SeqCst);
        }
        self.callers.store(state.jobs.len(), Ordering::Relaxed);
        drop(state);
        self.worked_ns.store(self.now_ns(), Ordering::Relaxed);
        wait_until(|| gate.inside.load(Ordering::Acquire) == 0, || false);
        // These helpers are free for other jobs now.
        self.wake_some();
    }

    /// Joins the job that has the fewest helpers.
    fn join_job(&self) -> Option<(usize, SharedWork, Arc<Gate>)> {
        let mut state = lock(&self.state);
        if state.free_cpus(self.cpus) == 0 {
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

    /// Works on a job that this thread has joined.
    fn help(&self, id: usize, work: SharedWork, gate: &Gate) {
        let ticket = HelperTicket(Some(Helper {
            pool: self,
            job: id,
            seen: Cell::new(self.posted.load(Ordering::Relaxed)),
            expired: Cell::new(false),
        }));
        // SAFETY: `join_job` has counted this thread in, so the caller still waits and the work
        // lives.
        let work = unsafe { &*work.0 };
        let helped = catch_unwind(AssertUnwindSafe(|| work(&ticket)));
        if let Err(panic) = helped {
            lock(&gate.panic).get_or_insert(panic);
        }
        if !ticket.has_expired() {
            let mut state = lock(&self.state);
            if let Some(job) = state.jobs.iter_mut().find(|job| job.id == id) {
                job.working -= 1;
            }
        }
        gate.inside.fetch_sub(1, Ordering::Release);
    }

    /// Whether a helper should leave job `id`: there are more working threads than CPUs, or another
    /// job has far fewer helpers. If so, its place is free again.
    fn is_needed_elsewhere(&self, id: usize) -> bool {
        let mut state = lock(&self.state);
        let crowded = state.threads_at_work() > self.cpus;
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

/// The helper threads: they spin for work, help, and sleep.
impl HelperPool {
    /// Starts threads until there are `wanted`, as far as CPUs and system allow.
    fn start_threads(&'static self, state: &mut State, wanted: usize) {
        let wanted = wanted.min(self.threads_at_most());
        while state.threads < wanted && self.start_thread(state.threads) {
            state.threads += 1;
        }
    }

    /// Starts another thread, unless the system refuses.
    fn start_thread(&'static self, number: usize) -> bool {
        let builder = std::thread::Builder::new().name(format!("pinlane-lane-{number}"));
        without_signals(|| builder.spawn(move || self.help_forever())).is_ok()
    }

    /// Wakes some helpers for the free places. Every woken helper does the same, since waking all
    /// of them would take one thread as long as the work itself.
    fn wake_some(&self) {
        self.wake(self.wanted.load(Ordering::SeqCst).min(WAKES));
    }

    fn wake(&self, threads: usize) {
        for _ in 0..threads {
            let sleeper = lock(&self.state).sleepers.pop();
            match sleeper {
                Some(thread) => thread.unpark(),
                None => return,
            }
        }
    }

    fn help_forever(&self) {
        let mut idle_since = Instant::now();
        self.awake.fetch_add(1, Ordering::Relaxed);
        loop {
            if self.wanted.load(Ordering::SeqCst) > 0
                && let Some((id, work, gate)) = self.join_job()
            {
                self.wake_some();
                self.help(id, work, &gate);
                idle_since = Instant::now();
            } else if idle_since.elapsed() < SPIN_TIME {
                for _ in 0..16 {
                    std::hint::spin_loop();
                }
            } else {
                self.awake.fetch_sub(1, Ordering::Relaxed);
                self.sleep();
                self.awake.fetch_add(1, Ordering::Relaxed);
                idle_since = Instant::now();
            }
        }
    }

    fn sleep(&self) {
        lock(&self.state).sleepers.push(std::thread::current());
        // A job may have been posted before the push; later posts wake this thread.
        if self.wanted.load(Ordering::SeqCst) == 0 || lock(&self.state).free_cpus(self.cpus) == 0 {
            std::thread::park();
        }
        let me = std::thread::current().id();
        lock(&self.state)
            .sleepers
            .retain(|thread| thread.id() != me);
    }
}

impl State {
    /// Callers work, too, and need their CPUs.
    fn threads_at_work(&self) -> usize {
        let helpers: usize = self.jobs.iter().map(|job| job.working).sum();
        self.jobs.len() + helpers
    }

    fn free_cpus(&self, cpus: usize) -> usize {
        cpus.saturating_sub(self.threads_at_work())
    }
}

/// A thread's permission to work on a job. A helper's can expire; the caller's, `None`, cannot.
pub(crate) struct HelperTicket<'a>(Option<Helper<'a>>);

struct Helper<'a> {
    pool: &'a HelperPool,
    job: usize,
    /// Value of `posted` at the last check.
    seen: Cell<usize>,
    expired: Cell<bool>,
}

impl HelperTicket<'_> {
    /// Whether to continue, to be called between pieces of work. After `false` the helper must
    /// return.
    pub(crate) fn is_valid(&self) -> bool {
        let Some(helper) = &self.0 else {
            return true;
        };
        let posted = helper.pool.posted.load(Ordering::Relaxed);
        if helper.seen.replace(posted) != posted {
            let expired = helper.pool.is_needed_elsewhere(helper.job);
            helper.expired.set(expired);
        }
        !helper.expired.get()
    }

    fn has_expired(&self) -> bool {
        self.0.as_ref().is_some_and(|helper| helper.expired.get())
    }
}

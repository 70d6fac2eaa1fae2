//! Jobs: work that a caller has posted, with the gate that its helpers go through.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Crew, Seat, Work, helpers_at_most};
use crate::sync::pause;

/// Work that a caller has posted.
pub(super) struct Job {
    pub(super) id: usize,
    pub(super) work: SharedWork,
    /// Helpers that may still join.
    pub(super) free: usize,
    /// Helpers that work on it and have not been told to go.
    pub(super) working: usize,
    pub(super) gate: Arc<Gate>,
}

/// Work of a caller that waits until all helpers have left it.
#[derive(Clone, Copy)]
pub(super) struct SharedWork(*const Work<'static>);

// SAFETY: the work is `Sync`, and lives until the gate is empty: `Crew::together` sees to that.
unsafe impl Send for SharedWork {}

/// Where helpers of a job are counted in and out.
pub(super) struct Gate {
    pub(super) inside: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Crew {
    /// Do `work` here, and let helpers join in.
    pub(super) fn together(&'static self, helpers: usize, work: &Work<'_>) {
        let gate = Arc::new(Gate {
            inside: AtomicUsize::new(0),
            panic: Mutex::new(None),
        });
        // SAFETY: only the lifetime changes. `Posted` ends the job and waits until the gate is
        // empty before this function is left, by return or by panic, so nobody uses it longer.
        let work_ptr = unsafe { std::mem::transmute::<&Work<'_>, &Work<'static>>(work) };
        let posted = self.post(helpers, SharedWork(work_ptr), &gate);
        work(&Seat::of_caller());
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

    /// A helper's part of job `id`, at which it has taken a seat.
    pub(super) fn help(&self, id: usize, work: SharedWork, gate: &Gate) {
        let seat = Seat::of_helper(self, id);
        // SAFETY: with its seat this thread was counted inside (`take_seat`), so the caller still waits and
        // the work lives.
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

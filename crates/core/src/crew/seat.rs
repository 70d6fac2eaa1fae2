//! Seats: which helper is at which job, so that callers share the crew evenly.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::job::{Gate, SharedWork};
use super::{Crew, State};

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

impl<'a> Seat<'a> {
    pub(super) fn of_caller() -> Self {
        Self { helper: None }
    }

    pub(super) fn of_helper(crew: &'a Crew, job: usize) -> Self {
        Self {
            helper: Some(Helper {
                crew,
                job,
                seen: Cell::new(crew.posted.load(Ordering::Relaxed)),
                sent_away: Cell::new(false),
            }),
        }
    }

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

    pub(super) fn was_sent_away(&self) -> bool {
        let helper = self.helper.as_ref();
        helper.is_some_and(|helper| helper.sent_away.get())
    }
}

impl Crew {
    /// Callers work, too: they and the helpers together get the CPUs.
    fn room(&self, state: &State) -> usize {
        let working: usize = state.jobs.iter().map(|job| job.working).sum();
        self.cpus.saturating_sub(state.jobs.len() + working)
    }

    pub(super) fn has_room(&self) -> bool {
        let state = self.state();
        self.room(&state) > 0
    }

    /// A seat at the job that has the fewest helpers.
    pub(super) fn take_seat(&self) -> Option<(usize, SharedWork, Arc<Gate>)> {
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

//! Opening batches: one thread at a time makes the next ready to be read.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

use crate::Sample;

use super::LoaderError;
use super::engine::{Desk, Engine, Means};
use super::sheet::Sheet;

/// What there is to do for a worker.
enum Task {
    Read(Arc<Sheet>),
    Open,
    Wait,
    Nothing,
}

impl Desk {
    /// Whether the next batch may be opened now.
    fn may_open(&self, prefetch: u64) -> bool {
        !self.opening && self.next < self.end && self.next < self.taken + prefetch
    }
}

impl Engine {
    /// A batch with samples to claim. Waits for one if `patient`; `None` when there is none.
    pub(super) fn sheet(&self, patient: bool) -> Option<Arc<Sheet>> {
        let mut desk = self.desk();
        loop {
            match self.task(&mut desk) {
                Task::Read(sheet) => return Some(sheet),
                Task::Open => desk = self.open_next(desk, true),
                Task::Wait if patient => {
                    let counters = &self.means.counters;
                    let waits_for = match desk.opening {
                        true => &counters.slot_wait_ns,
                        false => &counters.held_back_ns,
                    };
                    let waited = Instant::now();
                    let woken = self.work.wait(desk);
                    desk = woken.unwrap_or_else(PoisonError::into_inner);
                    waits_for.add_since(waited);
                }
                Task::Wait | Task::Nothing => return None,
            }
        }
    }

    /// Open the next batch while this one has samples left, if that is possible without waiting: then
    /// nobody stands idle at its end.
    pub(super) fn open_ahead(&self) {
        let desk = self.desk();
        if !self.is_stopped() && desk.may_open(self.means.prefetch) {
            drop(self.open_next(desk, false));
        }
    }

    /// The caller is the only one to open a batch meanwhile.
    fn open_next<'a>(
        &'a self,
        mut desk: MutexGuard<'a, Desk>,
        patient: bool,
    ) -> MutexGuard<'a, Desk> {
        let number = desk.next;
        desk.opening = true;
        drop(desk);
        let opened = self.open(number, patient);
        let mut desk = self.desk();
        desk.opening = false;
        match opened {
            Ok(Some(sheet)) => {
                desk.open.push_back(Arc::new(sheet));
                desk.next = number + 1;
            }
            Ok(None) => {}
            Err(error) => self.fail(&mut desk, number, error),
        }
        self.work.notify_all();
        desk
    }

    fn task(&self, desk: &mut Desk) -> Task {
        if self.is_stopped() {
            return Task::Nothing;
        }
        while let Some(sheet) = desk.open.front() {
            if sheet.slot.has_claims() {
                return Task::Read(Arc::clone(sheet));
            }
            desk.open.pop_front();
        }
        if desk.next >= desk.end {
            Task::Nothing
        } else if desk.may_open(self.means.prefetch) {
            Task::Open
        } else {
            Task::Wait
        }
    }

    /// `None` when it is not wanted any more, or when it would have to wait and is not `patient`.
    fn open(&self, number: u64, patient: bool) -> Result<Option<Sheet>, LoaderError> {
        let Means { depot, layout, .. } = &self.means;
        let slot = match patient {
            true => depot.slot(|| self.is_abandoned(number)),
            false => depot.slot_at_once(),
        };
        let slot = slot.map_err(|failed| self.told(number, failed))?;
        let samples: Vec<Sample> = self.order.batch(number as usize).collect();
        let Some(slot) = slot else {
            return Ok(None);
        };
        let places = layout.places(samples.len())?;
        Ok(Some(Sheet::new(layout, number, samples, slot, places)))
    }
}

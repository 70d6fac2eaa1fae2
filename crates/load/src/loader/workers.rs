//! What worker threads do: open batches, and read samples into their slots.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

use crate::dataset::SampleMut;
use crate::panic;

use super::pending_batch::{PendingBatch, SampleFailure};
use super::scheduler::{EpochScheduler, Schedule};
use super::stats::elapsed_ns;
use super::{LoaderError, OnError};

/// What a worker should do next.
enum Task {
    Read(Arc<PendingBatch>),
    Open,
    Wait,
    Nothing,
}

impl Schedule {
    /// Whether the next batch may be opened now.
    fn may_open(&self, prefetch: u64) -> bool {
        !self.opening && self.next < self.end && self.next < self.taken + prefetch
    }
}

impl EpochScheduler {
    /// Work until nothing is left to do; without `wait`, only until it would have to wait. `sample` is reused
    /// from sample to sample.
    pub(super) fn work(&self, mut sample: SampleMut<'static>, wait: bool) {
        let core = &*self.core;
        while let Some(batch) = self.next_batch(wait) {
            while let Some(mut claim) = batch.slot.claim(core.claim_len) {
                let start = Instant::now();
                for unit in claim.units() {
                    // Samples that are no longer needed count as finished, unread.
                    if self.is_cancelled(batch.number) || batch.failed_before(unit) {
                        continue;
                    }
                    let mut filled = sample.recycled();
                    let fields = core.layout.fields().iter();
                    for (field, room) in fields.zip(claim.slices_mut(unit)) {
                        filled.push(field, room);
                    }
                    self.read(&batch, unit, &mut filled);
                    sample = filled.recycled();
                }
                core.counters
                    .update(|stats| stats.read_ns += elapsed_ns(start));
                // One claim of a batch has its middle.
                let middle = batch.samples.len() / 2;
                let open_next = core.workers > 1 && claim.units().contains(&middle);
                if let Some(slot) = claim.finish() {
                    self.submit(&batch, slot);
                }
                if open_next {
                    self.open_ahead();
                }
            }
        }
    }

    /// Read one sample of a batch into its memory.
    fn read(&self, batch: &PendingBatch, number: usize, sample: &mut SampleMut<'_>) {
        let core = &*self.core;
        let index = batch.samples[number].index;
        sample.seal();
        let read = catch_unwind(AssertUnwindSafe(|| core.dataset.read(index, sample)));
        let failure = match read {
            Ok(read) => match read.and_then(|()| batch.keep(&core.layout, number, sample)) {
                Ok(()) => return,
                Err(error) if core.on_error == OnError::Skip => return batch.skip(number, error),
                Err(error) => SampleFailure::Error(error),
            },
            Err(panic) => SampleFailure::Panic(panic::text(panic)),
        };
        batch.fail(number, failure);
    }

    /// A batch with unclaimed samples. With `wait`, waits for one; `None` if there is none.
    fn next_batch(&self, wait: bool) -> Option<Arc<PendingBatch>> {
        let mut schedule = self.schedule();
        loop {
            match self.next_task(&mut schedule) {
                Task::Read(batch) => return Some(batch),
                Task::Open => schedule = self.open_next(schedule, true),
                Task::Wait if wait => {
                    let opening = schedule.opening;
                    let start = Instant::now();
                    let woken = self.work.wait(schedule);
                    schedule = woken.unwrap_or_else(PoisonError::into_inner);
                    self.core.counters.update(|stats| match opening {
                        true => stats.slot_wait_ns += elapsed_ns(start),
                        false => stats.held_back_ns += elapsed_ns(start),
                    });
                }
                Task::Wait | Task::Nothing => return None,
            }
        }
    }

    fn next_task(&self, schedule: &mut Schedule) -> Task {
        if self.is_stopped() {
            return Task::Nothing;
        }
        while let Some(batch) = schedule.open.front() {
            if batch.slot.has_unclaimed() {
                return Task::Read(Arc::clone(batch));
            }
            schedule.open.pop_front();
        }
        if schedule.next >= schedule.end {
            Task::Nothing
        } else if schedule.may_open(self.core.prefetch) {
            Task::Open
        } else {
            Task::Wait
        }
    }

    /// Open the next batch while this one still has unread samples, if that is possible without waiting.
    /// Then no thread is idle at the end of this one.
    fn open_ahead(&self) {
        let schedule = self.schedule();
        if !self.is_stopped() && schedule.may_open(self.core.prefetch) {
            drop(self.open_next(schedule, false));
        }
    }

    /// Open the next batch. No other thread opens one meanwhile.
    fn open_next<'a>(
        &'a self,
        mut schedule: MutexGuard<'a, Schedule>,
        wait: bool,
    ) -> MutexGuard<'a, Schedule> {
        let number = schedule.next;
        schedule.opening = true;
        drop(schedule);
        let opened = self.open(number, wait);
        let mut schedule = self.schedule();
        schedule.opening = false;
        match opened {
            Ok(Some(batch)) => {
                schedule.open.push_back(Arc::new(batch));
                schedule.next = number + 1;
            }
            Ok(None) => {}
            Err(error) => schedule = self.fail(schedule, number, error),
        }
        self.work.notify_all();
        schedule
    }

    /// `None` if the batch is no longer needed, or if it would have to wait without `wait`.
    fn open(&self, number: u64, wait: bool) -> Result<Option<PendingBatch>, LoaderError> {
        let core = &*self.core;
        let slot = match wait {
            true => core.buffers.slot(|| self.is_cancelled(number)),
            false => core.buffers.try_slot(),
        };
        let Some(slot) = slot.map_err(|failure| self.device_error(number, failure))? else {
            return Ok(None);
        };
        let samples = self.order.batch(number as usize).collect();
        PendingBatch::new(&core.layout, number, samples, slot).map(Some)
    }
}

//! The stream of tensors of a load into given memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::time::{Duration, Instant};

use super::given_device_memory::{DeviceTarget, FilledTensor, TargetRequest};
use super::job::{Job, JobMemory};
use super::running_load::RunningLoad;
use super::{LoadConfig, LoadProgress, LoadStats};
use crate::{LoadError, LoadErrorKind};
use pinlane_core::Stream;
use pinlane_core::internal::{drained, follow};

/// Tensors that get memory before the reader threads hear of it: enough that an event each time costs little,
/// few enough that the threads begin soon.
const TENSORS_AT_ONCE: usize = 64;

/// Bytes after which the reader threads hear of it, too.
const BYTES_AT_ONCE: u64 = 64 << 20;

/// Share of the window that must be free before more memory is asked for while complete tensors are left.
const FREE_SHARE: u64 = 8;

/// A running load into given memory ([`Weights::start_into`](crate::Weights::start_into)): an iterator over its
/// tensors, in the order in which they complete. Dropping it cancels the load, waits for its copies in flight, and
/// drops the owners of memory that it still has.
pub struct TargetStream<O, A> {
    running: RunningLoad,
    allocate: A,
    /// Earlier work on given memory is on this stream.
    stream: Stream,
    /// Tensors that are not empty, in the order of the plan, which is that of its allocations.
    order: Vec<usize>,
    /// How many of them have memory, and how many the reader threads know of.
    allocated: usize,
    announced: usize,
    /// Owners of the memory of tensors that are not taken, by tensor.
    owners: Vec<Option<O>>,
    /// Bytes of that memory, and the limit at which no more is asked for.
    held_bytes: u64,
    window_bytes: u64,
}

impl<O, A> TargetStream<O, A>
where
    A: FnMut(&TargetRequest<'_>) -> pinlane_core::Result<DeviceTarget<O>>,
{
    pub(super) fn start(
        job: Job,
        config: &LoadConfig,
        stream: &Stream,
        allocate: A,
    ) -> Result<Self, LoadError> {
        let placements = job.plan.placements();
        let (mut order, mut empty) = (vec![0; job.plan.allocations().len()], Vec::new());
        for (number, placement) in placements.iter().enumerate() {
            match placement.len_bytes {
                0 => empty.push(number),
                _ => order[placement.allocation] = number,
            }
        }
        let owners = placements.iter().map(|_| None).collect();
        let mut targets = Self {
            running: RunningLoad::start(job, config)?,
            allocate,
            stream: stream.clone(),
            order,
            allocated: 0,
            announced: 0,
            owners,
            held_bytes: 0,
            window_bytes: config.device_bytes.unwrap_or(u64::MAX),
        };
        // On an error, dropping `targets` stops the threads.
        for number in empty {
            targets.ask_for(number)?;
        }
        targets.ask_ahead()?;
        Ok(targets)
    }

    /// The next tensor, or `Pending` if none completes within `timeout`, not counting the time of the callback.
    /// The load continues either way.
    pub fn next_within(
        &mut self,
        timeout: Duration,
    ) -> Poll<Option<Result<FilledTensor<O>, LoadError>>> {
        self.next_by(Instant::now().checked_add(timeout))
    }

    fn next_by(
        &mut self,
        deadline: Option<Instant>,
    ) -> Poll<Option<Result<FilledTensor<O>, LoadError>>> {
        if self.running.has_failed() {
            return Poll::Ready(None);
        }
        let free_bytes = self.window_bytes.saturating_sub(self.held_bytes);
        // An event each time costs more than a small tensor is worth.
        let asked = match self.running.has_complete() && free_bytes < self.window_bytes / FREE_SHARE
        {
            true => Ok(()),
            false => self.ask_ahead(),
        };
        let next = match asked {
            Ok(()) => self.running.next_by(deadline),
            Err(error) => Poll::Ready(Some(Err(self.running.fail(error)))),
        };
        next.map(|next| match next? {
            Ok(number) => Some(Ok(self.take(number))),
            Err(error) => {
                self.release();
                Some(Err(error))
            }
        })
    }

    fn take(&mut self, number: usize) -> FilledTensor<O> {
        let job = &self.running.job;
        self.held_bytes -= job.plan.placements()[number].len_bytes;
        FilledTensor {
            info: job.tensors[number].clone(),
            number,
            dtype: job.dtype(number),
            owner: self.owners[number].take().expect("taken once"),
        }
    }

    /// Asks for memory as far as the window allows. Always for enough that the threads, and so the consumer, can go
    /// on once all complete tensors are taken: pieces are cut for this window.
    fn ask_ahead(&mut self) -> Result<(), LoadError> {
        let mut unannounced_bytes = 0;
        while self.held_bytes < self.window_bytes
            && let Some(number) = self.order.get(self.allocated).copied()
        {
            unannounced_bytes += self.ask_for(number)?;
            self.allocated += 1;
            let tensors = self.allocated - self.announced;
            if tensors >= TENSORS_AT_ONCE || unannounced_bytes >= BYTES_AT_ONCE {
                self.announce()?;
                unannounced_bytes = 0;
                if self.running.job.scheduler.is_cancelled() {
                    return Ok(()); // the error comes next
                }
            }
        }
        self.announce()
    }

    /// Asks for the memory of one tensor. Returns its size.
    fn ask_for(&mut self, number: usize) -> Result<u64, LoadError> {
        let job = &*self.running.job;
        let placement = job.plan.placements()[number];
        let len_bytes = placement.len_bytes as usize;
        let request = TargetRequest {
            info: &job.tensors[number],
            number,
            dtype: job.dtype(number),
            len_bytes,
        };
        let given = (self.allocate)(&request).map_err(LoadErrorKind::device);
        let target = given.and_then(|mut target| {
            if let Some(touch) = target.check(&self.stream, len_bytes)? {
                let waits = job.stream.wait_for_uses(&[touch]);
                waits.map_err(LoadErrorKind::device)?;
            }
            Ok(target)
        });
        let target = target.map_err(|kind| job.error(kind, Some(number)))?;
        if let JobMemory::Given(targets) = &job.memory
            && len_bytes > 0
        {
            let set = targets[placement.allocation].set(target.ptr);
            set.expect("asked for once");
        }
        self.owners[number] = Some(target.owner);
        self.held_bytes += placement.len_bytes;
        Ok(placement.len_bytes)
    }

    /// Lets the reader threads use the memory that was given since the last time, behind its earlier uses.
    fn announce(&mut self) -> Result<(), LoadError> {
        if self.announced < self.allocated {
            let job = &self.running.job;
            follow(&job.stream, &self.stream).map_err(LoadErrorKind::device)?;
            job.scheduler.targets_given(self.allocated);
            self.announced = self.allocated;
        }
        Ok(())
    }
}

impl<O, A> TargetStream<O, A> {
    /// Statistics so far.
    #[must_use]
    pub fn stats(&self) -> LoadStats {
        self.running.stats()
    }

    /// Progress, as of the last tensor taken.
    #[must_use]
    pub fn progress(&self) -> LoadProgress {
        self.running.progress()
    }

    /// Stops the load, waits for its copies, and drops the owners it still has.
    fn release(&mut self) {
        self.running.cancel();
        let owners = std::mem::take(&mut self.owners);
        if owners.iter().all(Option::is_none) {
            return;
        }
        // A panic of the driver must not free memory that it may still use.
        let owners = std::mem::ManuallyDrop::new(owners);
        let drain = AssertUnwindSafe(|| drained(&self.running.job.stream));
        if catch_unwind(drain).unwrap_or(false) {
            drop(std::mem::ManuallyDrop::into_inner(owners));
        }
    }
}

impl<O, A> Iterator for TargetStream<O, A>
where
    A: FnMut(&TargetRequest<'_>) -> pinlane_core::Result<DeviceTarget<O>>,
{
    type Item = Result<FilledTensor<O>, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_by(None) {
            Poll::Ready(next) => next,
            Poll::Pending => unreachable!("there is no deadline"),
        }
    }
}

impl<O, A> Drop for TargetStream<O, A> {
    fn drop(&mut self) {
        self.release();
    }
}

impl<O, A> std::fmt::Debug for TargetStream<O, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TargetStream")
            .field("progress", &self.progress())
            .field("held_bytes", &self.held_bytes)
            .finish_non_exhaustive()
    }
}

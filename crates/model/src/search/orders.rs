//! The best shape of each order.

use std::ops::RangeInclusive;

use super::bound::Bound;
use super::limits::Limits;
use super::predict::{Predictor, Sample};
use super::sizes;
use crate::Profile;
use crate::pipeline::{Cut, Job, Memory, Order, PlanError, Shape};

/// More streams are never tried.
pub const STREAMS_MAX: u32 = 8;

/// Slots that are tried for stage streams, whose number does not follow from the streams.
const STAGE_SLOTS: [u32; 4] = [2, 3, 4, 6];

/// Slots that a ring of the express lane has beside one a stream: being filled, being emptied.
const EXPRESS_SLOTS: u32 = 2;

/// Greater depths that brought nothing after which none are tried.
const IN_VAIN_MAX: u32 = 2;

/// A shape and what it takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) shape: Shape,
    pub(super) ns: u64,
    pinned_bytes: u64,
}

impl Found {
    /// Less time; of the same time, fewer streams, then less memory.
    fn key(&self) -> (u64, u32, u64, u32) {
        let Shape {
            streams,
            ring_slots,
            ..
        } = self.shape;
        (self.ns, streams, self.pinned_bytes, ring_slots)
    }

    /// The same without slots that would never be used.
    pub(super) fn no_longer_than(mut self, job: &Job) -> Result<Self, PlanError> {
        let chunks = self.shape.cut(job)?.count;
        let used = u32::try_from(chunks).unwrap_or(u32::MAX);
        let needed = used.max(self.shape.streams);
        self.shape.ring_slots = self.shape.ring_slots.min(needed);
        Ok(self)
    }

    /// The better one.
    pub(super) fn better(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if other.key() <= self.key() => other,
            _ => self,
        }
    }
}

/// Looks for shapes of one job.
pub(super) struct Search<'a> {
    pub(super) job: Job,
    pub(super) profile: &'a Profile,
    pub(super) limits: Limits,
    pub(super) predictor: Predictor<'a>,
}

impl Search<'_> {
    /// The best shape of an order; none if the limits leave none.
    pub(super) fn order(&mut self, order: Order) -> Result<Option<Found>, PlanError> {
        let mut best = None;
        self.try_sizes(order, &sizes::grid(self.job.bytes_in), &mut best)?;
        best.map(|best| self.found(best.shape, Sample::FULL))
            .transpose()
    }

    /// Looks around a shape for a better one, as long as there is one.
    pub(super) fn refine(&mut self, coarse: Found) -> Result<Found, PlanError> {
        let Shape {
            chunk_bytes, order, ..
        } = coarse.shape;
        let around = sizes::around(self.job.bytes_in, chunk_bytes);
        let mut quick = Some(self.found(coarse.shape, Sample::QUICK)?);
        self.try_sizes(order, &around, &mut quick)?;
        let mut best = coarse;
        if let Some(quick) = quick {
            best = self.found(quick.shape, Sample::FULL)?.better(Some(best));
        }
        loop {
            let before = best;
            for chunk_bytes in self.neighbours(&before.shape) {
                let shape = Shape {
                    chunk_bytes,
                    ..before.shape
                };
                if self.limits.check(&self.job, &shape).is_ok() {
                    best = self.found(shape, Sample::FULL)?.better(Some(best));
                }
            }
            if best.ns >= before.ns {
                return Ok(best);
            }
        }
    }

    /// The same with a slot to spare, where there is room for it. Copies of a schedule are never late;
    /// those of a device are, and with no slot to spare the other direction then waits for them. Chunks of
    /// the express lane have slots of their own beside.
    pub(super) fn with_a_spare(&mut self, found: Found) -> Result<Found, PlanError> {
        let shape = Shape {
            ring_slots: found.shape.ring_slots + 1,
            ..found.shape
        };
        let wants_one = shape.order == Order::StageStreams && !self.job.uses_lanes();
        if !wants_one || self.limits.check(&self.job, &shape).is_err() {
            return Ok(found);
        }
        let spared = self.found(shape, Sample::FULL)?;
        Ok(if spared.ns <= found.ns { spared } else { found })
    }

    /// Half and twice the chunk.
    pub(super) fn neighbours(&self, shape: &Shape) -> [u64; 2] {
        let half = (shape.chunk_bytes / 2).max(1);
        let twice = shape.chunk_bytes.saturating_mul(2);
        [half, twice.min(self.job.bytes_in)]
    }

    /// A shape and what it takes.
    fn found(&mut self, shape: Shape, sample: Sample) -> Result<Found, PlanError> {
        Ok(Found {
            shape,
            ns: self.predictor.ns(&self.job, &shape, sample)?,
            pinned_bytes: shape.pinned_bytes(&self.job)?,
        })
    }

    /// Tries chunks, those first that could be best.
    fn try_sizes(
        &mut self,
        order: Order,
        sizes: &[u64],
        best: &mut Option<Found>,
    ) -> Result<(), PlanError> {
        let mut bounds = Vec::with_capacity(sizes.len());
        for &chunk_bytes in sizes {
            let cut = Cut::new(&self.job, chunk_bytes)?;
            bounds.push((Bound::new(&self.job, self.profile, &cut)?, chunk_bytes));
        }
        bounds.sort_by_key(|&(bound, _)| bound.least_ns);
        for (bound, chunk_bytes) in bounds {
            if best.is_some_and(|best| bound.least_ns > best.ns) {
                break;
            }
            self.try_depths(order, chunk_bytes, &bound, best)?;
        }
        Ok(())
    }

    /// Tries depths from the least on, until more of it brings nothing.
    fn try_depths(
        &mut self,
        order: Order,
        chunk_bytes: u64,
        bound: &Bound,
        best: &mut Option<Found>,
    ) -> Result<(), PlanError> {
        let (mut least_ns, mut in_vain) = (u64::MAX, 0);
        for (streams, ring_slots) in self.depths(order) {
            let shape = Shape {
                chunk_bytes,
                streams,
                order,
                ring_slots,
            };
            if in_vain == IN_VAIN_MAX || self.limits.check(&self.job, &shape).is_err() {
                break;
            }
            if best.is_some_and(|best| bound.of(&shape) > best.ns) {
                continue;
            }
            let found = self.found(shape, Sample::QUICK)?;
            in_vain = if found.ns < least_ns { 0 } else { in_vain + 1 };
            least_ns = least_ns.min(found.ns);
            *best = Some(found.better(*best));
        }
        Ok(())
    }

    /// Streams and slots of an order, within the limits.
    fn depths(&self, order: Order) -> Vec<(u32, u32)> {
        let most = self.limits.streams_at_most.min(STREAMS_MAX);
        match order {
            // With one stream it is depth-first.
            Order::BreadthFirst => depths(&self.job, order, 2..=most),
            Order::DepthFirst | Order::StageStreams => depths(&self.job, order, 1..=most),
        }
    }
}

/// The numbers of streams and ring slots to try for an order, with numbers of streams from `streams`.
#[must_use]
pub fn depths(job: &Job, order: Order, streams: RangeInclusive<u32>) -> Vec<(u32, u32)> {
    let express = [job.input, job.output].contains(&Memory::Express);
    let more = if express { EXPRESS_SLOTS } else { 0 };
    match order {
        Order::StageStreams if !streams.contains(&Order::STAGES) => Vec::new(),
        Order::StageStreams => STAGE_SLOTS
            .map(|slots| (Order::STAGES, slots + more))
            .to_vec(),
        Order::DepthFirst | Order::BreadthFirst => {
            streams.map(|streams| (streams, streams + more)).collect()
        }
    }
}

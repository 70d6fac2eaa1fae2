//! The best shape of each order, and which chunk sizes are tried.

use std::ops::RangeInclusive;

use super::lower_bound::LowerBound;
use super::plan::Limits;
use super::predict::{Predictor, Sample};
use crate::Profile;
use crate::pipeline::{Chunks, Job, Memory, PipelineOrder, PlanError, Shape};

/// Most streams that are tried.
pub const STREAMS_MAX: u32 = 8;

/// Numbers of ring slots that are tried for stage streams. Other orders have one per stream.
const STAGE_SLOTS: [u32; 4] = [2, 3, 4, 6];

/// Additional ring slots for the express lane: one that it fills and one that it empties.
const EXPRESS_SLOTS: u32 = 2;

/// Number of depths without improvement after which no greater ones are tried.
const NO_GAIN_MAX: u32 = 2;

/// Smallest and largest size of the grid.
const CHUNK_LEAST: u64 = 256 << 10;
const CHUNK_MOST: u64 = 256 << 20;

/// Chunks start at page boundaries, unless they divide the job evenly.
const PAGE: u64 = 4096;

/// A job is also tried in 1 to this many equal parts.
const PARTS_MAX: u64 = 4;

/// Steps from one size of the grid to the next when the search is refined.
const FINE_STEPS: u64 = 6;

/// A shape and its predicted duration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) shape: Shape,
    pub(super) ns: u64,
    pinned_bytes: u64,
}

impl Candidate {
    /// Candidates are compared by time, then streams, then memory.
    fn key(&self) -> (u64, u32, u64, u32) {
        let shape = &self.shape;
        (self.ns, shape.streams, self.pinned_bytes, shape.ring_slots)
    }

    /// Removes slots that would never be used.
    pub(super) fn without_unused_slots(mut self, job: &Job) -> Result<Self, PlanError> {
        let used = self.shape.chunks(job)?.count.max(self.shape.streams.into());
        let used = u32::try_from(used).unwrap_or(u32::MAX);
        self.shape.ring_slots = self.shape.ring_slots.min(used);
        Ok(self)
    }

    /// The better one of two.
    pub(super) fn better(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if other.key() <= self.key() => other,
            _ => self,
        }
    }
}

/// A search for one job's best shape.
pub(super) struct Search<'a> {
    pub(super) job: Job,
    pub(super) profile: &'a Profile,
    pub(super) limits: Limits,
    pub(super) predictor: Predictor<'a>,
}

impl Search<'_> {
    /// The best shape of an order; `None` if none is within the limits.
    pub(super) fn best_of(&mut self, order: PipelineOrder) -> Result<Option<Candidate>, PlanError> {
        let mut best = None;
        self.try_sizes(order, &grid(self.job.bytes_in), &mut best)?;
        best.map(|best| self.predict(best.shape, Sample::FULL))
            .transpose()
    }

    /// Improves a shape by trying similar chunk sizes until none is better.
    pub(super) fn refine(&mut self, coarse: Candidate) -> Result<Candidate, PlanError> {
        let Shape {
            chunk_bytes, order, ..
        } = coarse.shape;
        let sizes = around(self.job.bytes_in, chunk_bytes);
        let mut quick = Some(self.predict(coarse.shape, Sample::QUICK)?);
        self.try_sizes(order, &sizes, &mut quick)?;
        let mut best = coarse;
        if let Some(Candidate { shape, .. }) = quick {
            best = self.predict(shape, Sample::FULL)?.better(Some(best));
        }
        loop {
            let before = best;
            for chunk_bytes in self.half_and_twice(&before.shape) {
                let shape = Shape {
                    chunk_bytes,
                    ..before.shape
                };
                if self.limits.check(&self.job, &shape).is_ok() {
                    best = self.predict(shape, Sample::FULL)?.better(Some(best));
                }
            }
            if best.ns >= before.ns {
                return Ok(best);
            }
        }
    }

    /// Adds a spare slot to stage streams, if the limits allow it. On a real device copies are
    /// sometimes late, and without a spare slot the other direction would wait for them. With the
    /// express lane there are additional slots already.
    pub(super) fn with_spare_slot(&mut self, found: Candidate) -> Result<Candidate, PlanError> {
        let shape = Shape {
            ring_slots: found.shape.ring_slots + 1,
            ..found.shape
        };
        let wants_one = shape.order == PipelineOrder::StageStreams && !self.job.uses_express();
        if !wants_one || self.limits.check(&self.job, &shape).is_err() {
            return Ok(found);
        }
        let spared = self.predict(shape, Sample::FULL)?;
        Ok(if spared.ns <= found.ns { spared } else { found })
    }

    /// Half and twice the chunk size.
    pub(super) fn half_and_twice(&self, shape: &Shape) -> [u64; 2] {
        let half = (shape.chunk_bytes / 2).max(1);
        let twice = shape.chunk_bytes.saturating_mul(2);
        [half, twice.min(self.job.bytes_in)]
    }

    fn predict(&mut self, shape: Shape, sample: Sample) -> Result<Candidate, PlanError> {
        Ok(Candidate {
            shape,
            ns: self.predictor.ns(&self.job, &shape, sample)?,
            pinned_bytes: shape.pinned_bytes(&self.job)?,
        })
    }

    /// Tries chunk sizes, most promising first.
    fn try_sizes(
        &mut self,
        order: PipelineOrder,
        sizes: &[u64],
        best: &mut Option<Candidate>,
    ) -> Result<(), PlanError> {
        let mut bounds = Vec::with_capacity(sizes.len());
        for &chunk_bytes in sizes {
            let chunks = Chunks::new(&self.job, chunk_bytes)?;
            let bound = LowerBound::new(&self.job, self.profile, &chunks)?;
            bounds.push((bound, chunk_bytes));
        }
        bounds.sort_by_key(|&(bound, _)| bound.ns);
        for (bound, chunk_bytes) in bounds {
            if best.is_some_and(|best| bound.ns > best.ns) {
                break;
            }
            self.try_depths(order, chunk_bytes, &bound, best)?;
        }
        Ok(())
    }

    /// Tries increasing numbers of streams and slots, until they no longer help.
    fn try_depths(
        &mut self,
        order: PipelineOrder,
        chunk_bytes: u64,
        bound: &LowerBound,
        best: &mut Option<Candidate>,
    ) -> Result<(), PlanError> {
        let (mut least_ns, mut no_gain) = (u64::MAX, 0);
        for (streams, ring_slots) in self.depths(order) {
            let shape = Shape {
                chunk_bytes,
                streams,
                order,
                ring_slots,
            };
            if no_gain == NO_GAIN_MAX || self.limits.check(&self.job, &shape).is_err() {
                break;
            }
            if best.is_some_and(|best| bound.of(&shape) > best.ns) {
                continue;
            }
            let found = self.predict(shape, Sample::QUICK)?;
            no_gain = if found.ns < least_ns { 0 } else { no_gain + 1 };
            least_ns = least_ns.min(found.ns);
            *best = Some(found.better(*best));
        }
        Ok(())
    }

    /// Numbers of streams and slots of an order, within the limits.
    fn depths(&self, order: PipelineOrder) -> Vec<(u32, u32)> {
        let most = self.limits.streams_at_most.min(STREAMS_MAX);
        // With one stream breadth-first would be depth-first.
        let least = match order {
            PipelineOrder::BreadthFirst => 2,
            _ => 1,
        };
        depths(&self.job, order, least..=most)
    }
}

/// Numbers of streams and ring slots to try for an order, with numbers of streams from `streams`.
#[must_use]
pub fn depths(job: &Job, order: PipelineOrder, streams: RangeInclusive<u32>) -> Vec<(u32, u32)> {
    let express = [job.input, job.output].contains(&Memory::Express);
    let more = if express { EXPRESS_SLOTS } else { 0 };
    match order {
        PipelineOrder::StageStreams if !streams.contains(&PipelineOrder::STAGES) => Vec::new(),
        PipelineOrder::StageStreams => STAGE_SLOTS
            .map(|slots| (PipelineOrder::STAGES, slots + more))
            .to_vec(),
        PipelineOrder::DepthFirst | PipelineOrder::BreadthFirst => {
            streams.map(|streams| (streams, streams + more)).collect()
        }
    }
}

/// Chunk sizes of the search that are powers of two, in rising order.
pub fn power_of_two_chunks() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(CHUNK_LEAST), |size| Some(size * 2))
        .take_while(|size| *size <= CHUNK_MOST)
}

/// Sizes in steps of √2, each also rounded so that it divides the job evenly; sorted, unique.
fn grid(bytes_in: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    for size in power_of_two_chunks() {
        // Times √2, rounded down to a page.
        let between = (size as u128 * 1_414_213 / 1_000_000) as u64 / PAGE * PAGE;
        for chunk in [size, between] {
            if chunk < bytes_in && chunk <= CHUNK_MOST {
                sizes.push(chunk);
                sizes.push(even(bytes_in, chunk));
            }
        }
    }
    let parts = (1..=PARTS_MAX).map(|parts| bytes_in.div_ceil(parts));
    sizes.extend(parts.filter(|&chunk| chunk > 0 && (chunk <= CHUNK_MOST || chunk == bytes_in)));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Sizes that divide the job evenly, between the grid's neighbours of one size.
fn around(bytes_in: u64, chunk_bytes: u64) -> Vec<u64> {
    let most = chunk_bytes.saturating_mul(3) / 2;
    let least = chunk_bytes * 2 / 3;
    let step = ((most - least) / (2 * FINE_STEPS)).max(1);
    let mut sizes: Vec<_> = (0..=2 * FINE_STEPS)
        .map(|index| even(bytes_in, least + index * step))
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The size nearest to this one that divides the job evenly.
fn even(bytes_in: u64, chunk_bytes: u64) -> u64 {
    let chunk_bytes = chunk_bytes.clamp(1, bytes_in);
    let parts = (bytes_in + chunk_bytes / 2) / chunk_bytes;
    bytes_in.div_ceil(parts.max(1))
}

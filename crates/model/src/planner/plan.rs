//! The plan for a job, its limits and its alternatives.

use super::advice::{Advice, Bottleneck};
use super::predict::{CHUNKS_MAX, Predictor, Sample};
use super::search::{Candidate, Search};
use crate::Profile;
use crate::pipeline::{Job, Memory, PipelineOrder, PlanError, Shape};
use crate::schedule::{Schedule, schedule};

/// The best way to do a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The best shape.
    pub shape: Shape,
    /// Its predicted duration.
    pub predicted_ns: u64,
    /// Its schedule, of the first 512 chunks at most.
    pub schedule: Schedule,
    /// Other ways, and their durations.
    pub alternatives: Vec<Alternative>,
    /// What limits it.
    pub bottleneck: Bottleneck,
    /// What would help.
    pub advice: Advice,
}

/// Another way to do the job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alternative {
    /// `serial, pageable`, `serial, pinned`, the name of an order (its best shape), `half the chunk`
    /// or `twice the chunk`. All but the first two only if the limits allow it.
    pub name: &'static str,
    /// Its shape; `None` if it is serial.
    pub shape: Option<Shape>,
    /// Its predicted duration.
    pub ns: u64,
}

/// Resources that a plan may use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Limits {
    /// Device memory for the buffers of chunks.
    pub device_bytes: u64,
    /// Pinned memory for the express lane. Pinned input and output do not count.
    pub pinned_bytes: u64,
    /// Number of streams; more than [`STREAMS_MAX`](super::STREAMS_MAX) are never tried.
    pub streams_at_most: u32,
}

impl Default for Limits {
    /// Unlimited memory, 8 streams.
    fn default() -> Self {
        Self {
            device_bytes: u64::MAX,
            pinned_bytes: u64::MAX,
            streams_at_most: 8,
        }
    }
}

impl Limits {
    /// Checks that a shape is within the limits.
    ///
    /// # Errors
    /// [`PlanError`] for `streams`, `device_bytes` or `pinned_bytes`, or for an invalid shape.
    pub fn check(&self, job: &Job, shape: &Shape) -> Result<(), PlanError> {
        let needed = [
            ("streams", shape.streams.into(), self.streams_at_most.into()),
            ("device_bytes", shape.device_bytes(job)?, self.device_bytes),
            ("pinned_bytes", shape.pinned_bytes(job)?, self.pinned_bytes),
        ];
        for (field, needed, most) in needed {
            if needed > most {
                let reason = format!("{needed} needed, at most {most} allowed");
                return Err(PlanError::invalid(field, reason));
            }
        }
        Ok(())
    }
}

/// Finds the fastest shape; among equals, the one with the fewest streams, then the least pinned
/// memory. Stage streams get a spare slot, if the limits and the number of chunks allow it and the
/// express lane is not used.
///
/// # Errors
/// [`PlanError`] with the field that is invalid or leaves no room.
pub fn best(job: &Job, profile: &Profile, limits: &Limits) -> Result<Plan, PlanError> {
    if limits.streams_at_most == 0 {
        return Err(PlanError::invalid("streams_at_most", "must be at least 1"));
    }
    job.check(profile)?;
    let mut search = Search {
        job: *job,
        profile,
        limits: *limits,
        predictor: Predictor::new(profile),
    };
    let mut best: Option<Candidate> = None;
    let mut orders = Vec::new();
    for order in PipelineOrder::ALL {
        if let Some(found) = search.best_of(order)? {
            best = Some(found.better(best));
            orders.push(found);
        }
    }
    let Some(best) = best else {
        return Err(no_room(job, limits));
    };
    let best = search.refine(prefer_stage_streams(best, &orders))?;
    let best = search.with_spare_slot(best)?.without_unused_slots(job)?;
    for found in &mut orders {
        if found.shape.order == best.shape.order {
            *found = best;
        }
    }
    let shape = best.shape;
    let program = shape.program_of_first(job, profile, CHUNKS_MAX)?;
    let schedule = schedule(profile, &program)?;
    let bottleneck = Bottleneck::of(&schedule);
    Ok(Plan {
        shape,
        predicted_ns: best.ns,
        alternatives: alternatives(&mut search, &best, &orders)?,
        advice: Advice::new(&mut search, &best, bottleneck)?,
        bottleneck,
        schedule,
    })
}

/// Chooses stage streams if they are within 0.5% of the best. On real devices their predictions
/// proved most accurate: a copy never waits there for a kernel of its own stream.
fn prefer_stage_streams(best: Candidate, orders: &[Candidate]) -> Candidate {
    let mut orders = orders.iter();
    let stages = orders.find(|found| found.shape.order == PipelineOrder::StageStreams);
    match stages {
        Some(stages) if stages.ns - best.ns <= best.ns / 200 => *stages,
        _ => best,
    }
}

fn alternatives(
    search: &mut Search<'_>,
    best: &Candidate,
    orders: &[Candidate],
) -> Result<Vec<Alternative>, PlanError> {
    let job = search.job;
    let mut all = Vec::new();
    for (name, memory) in [
        ("serial, pageable", Memory::Pageable),
        ("serial, pinned", Memory::Pinned),
    ] {
        let program = with_memory(&job, memory).serial(search.profile)?;
        let ns = schedule(search.profile, &program)?.end_ns;
        let shape = None;
        all.push(Alternative { name, shape, ns });
    }
    all.extend(orders.iter().map(|found| Alternative {
        name: found.shape.order.name(),
        shape: Some(found.shape),
        ns: found.ns,
    }));
    let [half, twice] = search.half_and_twice(&best.shape);
    for (name, chunk_bytes) in [("half the chunk", half), ("twice the chunk", twice)] {
        let shape = Shape {
            chunk_bytes,
            ..best.shape
        };
        if search.limits.check(&job, &shape).is_err() {
            continue;
        }
        all.push(Alternative {
            name,
            shape: Some(shape),
            ns: search.predictor.ns(&job, &shape, Sample::FULL)?,
        });
    }
    Ok(all)
}

/// The job with another kind of host memory.
pub(super) fn with_memory(job: &Job, memory: Memory) -> Job {
    let changed = |it| match it {
        Memory::Device => Memory::Device,
        _ => memory,
    };
    Job {
        input: changed(job.input),
        output: changed(job.output),
        ..*job
    }
}

/// The error if not even the smallest chunk fits.
fn no_room(job: &Job, limits: &Limits) -> PlanError {
    let express = [job.input, job.output].contains(&Memory::Express);
    let (field, bytes) = if express && limits.pinned_bytes < limits.device_bytes {
        ("pinned_bytes", limits.pinned_bytes)
    } else {
        ("device_bytes", limits.device_bytes)
    };
    PlanError::invalid(field, format!("{bytes} bytes leave no room for any chunk"))
}

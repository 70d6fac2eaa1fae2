//! Searches the best shape for a job: schedules many, and explains the result.
//!
//! ```text
//!   best            the fastest shape for a job, and its alternatives      (this file)
//!   plan.rs         what a plan holds, and the limits it must keep
//!   search.rs       the best shape of each order, and which chunk sizes are tried
//!   lower_bound.rs  what no schedule can beat: shapes that cannot win are not scheduled
//!   predict.rs      a shape's duration by its schedule; with many chunks, extrapolated
//!   advice.rs       what limits the best shape, and what would help
//! ```
//!
//! ```
//! use pinlane_model::Profile;
//! use pinlane_model::pipeline::{Job, KernelTime, Memory};
//! use pinlane_model::planner::{Limits, best};
//!
//! let profile = Profile::builtin("h200").unwrap();
//! let job = Job {
//!     bytes_in: 1 << 30,
//!     bytes_out: 1 << 30,
//!     kernel: KernelTime { ns_per_gib: 4_200_000, ..KernelTime::default() },
//!     input: Memory::Pinned,
//!     output: Memory::Pinned,
//!     host_ns_per_chunk: 0,
//! };
//! let plan = best(&job, &profile, &Limits::default())?;
//! let serial = plan.alternatives.iter().find(|it| it.name == "serial, pinned").unwrap();
//! assert!(plan.predicted_ns * 19 < serial.ns * 10); // 1.9 times as fast
//! # Ok::<(), pinlane_model::pipeline::PlanError>(())
//! ```

mod advice;
mod lower_bound;
mod plan;
mod predict;
mod search;

use crate::Profile;
use crate::pipeline::{Job, Memory, PipelineOrder, PlanError, Shape};
use crate::schedule::schedule;
use predict::{CHUNKS_MAX, Predictor, Sample};
use search::{Candidate, Search};

pub use advice::{Advice, Bottleneck, Resource};
pub use plan::{Alternative, Limits, Plan};
pub use predict::predict_ns;
pub use search::{STREAMS_MAX, depths, power_of_two_chunks};

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
fn with_memory(job: &Job, memory: Memory) -> Job {
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

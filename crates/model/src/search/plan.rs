//! The plan for a job.

use super::limits::Limits;
use super::orders::{Found, Search};
use super::predict::{CHUNKS_MAX, Predictor, Sample};
use super::verdict::{Advice, Bottleneck};
use crate::Profile;
use crate::pipeline::{Job, Memory, Order, PlanError, Shape};
use crate::schedule::{Schedule, schedule};

/// How to do a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The best shape.
    pub shape: Shape,
    /// What it takes.
    pub predicted_ns: u64,
    /// Its schedule; of more than 512 chunks that of the first 512.
    pub schedule: Schedule,
    /// What other ways take.
    pub alternatives: Vec<Alternative>,
    /// What limits it.
    pub bottleneck: Bottleneck,
    /// What would help.
    pub advice: Advice,
}

/// Another way to do the job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alternative {
    /// What it is: `serial, pageable`, `serial, pinned`, the name of an order at its best (where
    /// the limits allow it), `half the chunk`, `twice the chunk` (both where
    /// the limits allow it).
    pub name: &'static str,
    /// Its shape; none where it is serial.
    pub shape: Option<Shape>,
    /// What it takes.
    pub ns: u64,
}

/// The shape that takes the least time. Of several it is the one with the fewest streams, and of
/// these the one with the least pinned memory. With a stream a stage it has a slot more than it needs, where
/// the limits have room, the job has so many chunks and no express lane is used.
///
/// # Errors
/// [`PlanError`] with the field that makes no sense or leaves no room.
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
    let mut best: Option<Found> = None;
    let mut orders = Vec::new();
    for order in Order::ALL {
        if let Some(found) = search.order(order)? {
            best = Some(found.better(best));
            orders.push(found);
        }
    }
    let Some(best) = best else {
        return Err(no_room(job, limits));
    };
    let best = search.refine(settle(best, &orders))?;
    let best = search.with_a_spare(best)?.no_longer_than(job)?;
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

/// Where a stream a stage is as good but for a hair, it is taken: what it promises was kept best on
/// real devices, where a copy never waits there for a kernel of its own stream.
fn settle(best: Found, orders: &[Found]) -> Found {
    let mut orders = orders.iter();
    let stages = orders.find(|found| found.shape.order == Order::StageStreams);
    match stages {
        Some(stages) if stages.ns - best.ns <= best.ns / 200 => *stages,
        _ => best,
    }
}

fn alternatives(
    search: &mut Search<'_>,
    best: &Found,
    orders: &[Found],
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
    let [half, twice] = search.neighbours(&best.shape);
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

/// The job with its host memory of this kind.
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

/// Not even the smallest chunk fits.
fn no_room(job: &Job, limits: &Limits) -> PlanError {
    let express = [job.input, job.output].contains(&Memory::Express);
    let (field, bytes) = if express && limits.pinned_bytes < limits.device_bytes {
        ("pinned_bytes", limits.pinned_bytes)
    } else {
        ("device_bytes", limits.device_bytes)
    };
    PlanError::invalid(field, format!("{bytes} bytes leave no room for any chunk"))
}

//! The best shape with what the user fixed: chunk size, streams or order.

use pinlane_model::Profile;
use pinlane_model::pipeline::{Job, PipelineOrder, PlanError, Shape};
use pinlane_model::search::{Limits, STREAMS_MAX, depths, power_of_two_chunks, predict_ns};

use super::args::Args;
use super::job::{check_time, refusal};
use crate::output::UsageError;

/// The best shape with everything that was given, and its time. `None` if nothing was given.
pub(super) fn find(
    args: &Args,
    job: &Job,
    profile: &Profile,
    limits: &Limits,
    best: &Shape,
) -> Result<Option<(Shape, u64)>, UsageError> {
    if args.chunk.is_none() && args.streams.is_none() && args.order.is_none() {
        return Ok(None);
    }
    if let (Some(PipelineOrder::StageStreams), Some(streams)) = (args.order, args.streams)
        && streams != PipelineOrder::STAGES
    {
        return Err(UsageError::new(format!(
            "--streams {streams}: stage streams always use {} streams, one per stage; drop --streams or \
             choose another --order",
            PipelineOrder::STAGES
        )));
    }
    let refused = |error: PlanError| refusal(&error, args);
    let mut chosen: Option<(u64, Shape)> = None;
    let mut least = MemoryNeeds::MAX;
    for shape in candidates(args, job, best) {
        let needs = MemoryNeeds::of(&shape, job).map_err(refused)?;
        least = least.min(needs);
        if !needs.fit(limits) {
            continue;
        }
        let ns = predict_ns(job, profile, &shape).map_err(refused)?;
        let key = |ns, shape: &Shape| (ns, shape.streams, shape.ring_slots);
        if chosen.is_none_or(|(least_ns, best)| key(ns, &shape) < key(least_ns, &best)) {
            chosen = Some((ns, shape));
        }
    }
    let (ns, shape) = chosen.ok_or_else(|| least.refusal(limits))?;
    check_time(ns, "--chunk, --streams, --order")?;
    Ok(Some((shape, ns)))
}

/// All shapes with everything that was given.
fn candidates(args: &Args, job: &Job, best: &Shape) -> Vec<Shape> {
    let streams = match args.streams {
        Some(streams) => streams..=streams,
        None => 1..=STREAMS_MAX,
    };
    let chunks: Vec<u64> = match args.chunk {
        Some(bytes) => vec![bytes as u64],
        None => {
            let smaller = power_of_two_chunks().filter(|bytes| *bytes < job.bytes_in);
            smaller.chain([best.chunk_bytes, job.bytes_in]).collect()
        }
    };
    let mut shapes = Vec::new();
    for order in args
        .order
        .map_or(PipelineOrder::ALL.to_vec(), |order| vec![order])
    {
        for (streams, ring_slots) in depths(job, order, streams.clone()) {
            shapes.extend(chunks.iter().map(|&chunk_bytes| Shape {
                chunk_bytes,
                streams,
                order,
                ring_slots,
            }));
        }
    }
    shapes
}

/// Memory that a shape needs.
#[derive(Clone, Copy)]
struct MemoryNeeds {
    device_bytes: u64,
    pinned_bytes: u64,
}

impl MemoryNeeds {
    const MAX: Self = Self {
        device_bytes: u64::MAX,
        pinned_bytes: u64::MAX,
    };

    fn of(shape: &Shape, job: &Job) -> Result<Self, PlanError> {
        Ok(Self {
            device_bytes: shape.device_bytes(job)?,
            pinned_bytes: shape.pinned_bytes(job)?,
        })
    }

    fn min(self, other: Self) -> Self {
        Self {
            device_bytes: self.device_bytes.min(other.device_bytes),
            pinned_bytes: self.pinned_bytes.min(other.pinned_bytes),
        }
    }

    fn fit(self, limits: &Limits) -> bool {
        self.device_bytes <= limits.device_bytes && self.pinned_bytes <= limits.pinned_bytes
    }

    /// Why no shape fits.
    fn refusal(self, limits: &Limits) -> UsageError {
        let (flag, needed, allowed) = if self.device_bytes > limits.device_bytes {
            ("--device-memory", self.device_bytes, limits.device_bytes)
        } else {
            ("--pinned-memory", self.pinned_bytes, limits.pinned_bytes)
        };
        UsageError::new(format!(
            "{flag}: the given --chunk, --streams and --order need {needed} bytes, but only {allowed} are \
             allowed; use a smaller --chunk or fewer --streams"
        ))
    }
}

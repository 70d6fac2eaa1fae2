//! The best shape with what the user fixed: chunk size, streams or order.

use pinlane_model::Profile;
use pinlane_model::pipeline::{Job, PipelineOrder, Shape};
use pinlane_model::planner::{Limits, STREAMS_MAX, depths, power_of_two_chunks, predict_ns};

use super::args::{Args, check_time};
use crate::input_error::UsageError;

/// The best shape with everything that was given, and its time. `None` if nothing was given.
pub(super) fn find(
    args: &Args,
    job: &Job,
    profile: &Profile,
    limits: &Limits,
    best: &Shape,
) -> Result<Option<(Shape, u64)>, UsageError> {
    const STAGES: u32 = PipelineOrder::STAGES;
    if args.chunk.is_none() && args.streams.is_none() && args.order.is_none() {
        return Ok(None);
    }
    if let (Some(PipelineOrder::StageStreams), Some(streams)) = (args.order, args.streams)
        && streams != STAGES
    {
        return Err(UsageError(format!(
            "--streams {streams}: stage streams always use {STAGES} streams, one per stage; drop --streams or \
             choose another --order"
        )));
    }
    let mut chosen: Option<(u64, Shape)> = None;
    let (mut least_device, mut least_pinned) = (u64::MAX, u64::MAX);
    for shape in candidates(args, job, best) {
        let refused = |error| args.refusal(error);
        let device_bytes = shape.device_bytes(job).map_err(refused)?;
        let pinned_bytes = shape.pinned_bytes(job).map_err(refused)?;
        least_device = least_device.min(device_bytes);
        least_pinned = least_pinned.min(pinned_bytes);
        if device_bytes > limits.device_bytes || pinned_bytes > limits.pinned_bytes {
            continue;
        }
        let ns = predict_ns(job, profile, &shape).map_err(refused)?;
        let key = |ns, shape: &Shape| (ns, shape.streams, shape.ring_slots);
        if chosen.is_none_or(|(least_ns, best)| key(ns, &shape) < key(least_ns, &best)) {
            chosen = Some((ns, shape));
        }
    }
    let (ns, shape) = chosen.ok_or_else(|| {
        let (flag, needed, allowed) = match least_device > limits.device_bytes {
            true => ("--device-memory", least_device, limits.device_bytes),
            false => ("--pinned-memory", least_pinned, limits.pinned_bytes),
        };
        UsageError(format!(
            "{flag}: the given --chunk, --streams and --order need {needed} bytes, but only {allowed} are \
             allowed; use a smaller --chunk or fewer --streams"
        ))
    })?;
    check_time(ns, "--chunk, --streams, --order")?;
    Ok(Some((shape, ns)))
}

fn candidates(args: &Args, job: &Job, best: &Shape) -> Vec<Shape> {
    let given = args.streams;
    let streams = given.unwrap_or(1)..=given.unwrap_or(STREAMS_MAX);
    let chunks: Vec<u64> = match args.chunk {
        Some(bytes) => vec![bytes as u64],
        None => {
            let smaller = power_of_two_chunks().filter(|bytes| *bytes < job.bytes_in);
            smaller.chain([best.chunk_bytes, job.bytes_in]).collect()
        }
    };
    let orders = PipelineOrder::ALL.into_iter();
    let orders = orders.filter(|order| args.order.is_none_or(|given| given == *order));
    let mut shapes = Vec::new();
    for order in orders {
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

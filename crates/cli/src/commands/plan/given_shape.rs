//! A shape of which the user chose some parts.

use pinlane_model::Profile;
use pinlane_model::pipeline::{Job, Memory, Order, PlanError, Shape};
use pinlane_model::search::{Limits, predict_ns};

use super::job::{check_time, refusal};
use super::words::Args;
use crate::output::UsageError;

/// What stage streams always have.
const STAGES: u32 = 3;
/// More streams are not tried where the user leaves their number open.
const STREAMS_TRIED: u32 = 8;
/// Slots that are tried for stage streams.
const STAGE_SLOTS: [u32; 4] = [2, 3, 4, 6];
/// Slots of the express lane's rings beside one a stream.
const EXPRESS_SLOTS: u32 = 2;
/// Smallest and largest chunk that is tried where the user leaves it open.
const CHUNKS_TRIED: std::ops::RangeInclusive<u32> = 18..=28;

/// The best shape that has all that was given, and what it takes. `None` where nothing was given.
pub(super) fn shape(
    args: &Args,
    job: &Job,
    profile: &Profile,
    limits: &Limits,
    best: &Shape,
) -> Result<Option<(Shape, u64)>, UsageError> {
    if args.chunk.is_none() && args.streams.is_none() && args.order.is_none() {
        return Ok(None);
    }
    let order = args.order.map(Order::from);
    if let (Some(Order::StageStreams), Some(streams)) = (order, args.streams)
        && streams != STAGES
    {
        return Err(UsageError::new(format!(
            "--streams {streams}: stage streams are {STAGES}, one a step; leave --streams out or \
             choose another --order"
        )));
    }
    let refused = |error: PlanError| refusal(&error, args);
    let mut chosen: Option<(u64, Shape)> = None;
    let mut least = Needs::MOST;
    for shape in candidates(args, job, order, best) {
        let needs = Needs::of(&shape, job).map_err(refused)?;
        least = least.least(needs);
        if !needs.fit(limits) {
            continue;
        }
        let ns = predict_ns(job, profile, &shape).map_err(refused)?;
        let key = |ns, shape: &Shape| (ns, shape.streams, shape.ring_slots);
        if chosen.is_none_or(|(least_ns, best)| key(ns, &shape) < key(least_ns, &best)) {
            chosen = Some((ns, shape));
        }
    }
    match chosen {
        Some((ns, shape)) => {
            check_time(ns, "--chunk, --streams, --order")?;
            Ok(Some((shape, ns)))
        }
        None => Err(least.refusal(limits)),
    }
}

/// All shapes that have what was given.
fn candidates(args: &Args, job: &Job, order: Option<Order>, best: &Shape) -> Vec<Shape> {
    let express = [job.input, job.output].contains(&Memory::Express);
    let more = if express { EXPRESS_SLOTS } else { 0 };
    let mut shapes = Vec::new();
    for order in Order::ALL
        .into_iter()
        .filter(|it| order.is_none_or(|order| order == *it))
    {
        let streams: Vec<u32> = match (order, args.streams) {
            (Order::StageStreams, None | Some(STAGES)) => vec![STAGES],
            (Order::StageStreams, Some(_)) => Vec::new(),
            (_, Some(streams)) => vec![streams],
            (_, None) => (1..=STREAMS_TRIED).collect(),
        };
        for streams in streams {
            let slots = match order {
                Order::StageStreams => STAGE_SLOTS.to_vec(),
                _ => vec![streams],
            };
            for slots in slots {
                shapes.extend(
                    chunks(args, job, best)
                        .into_iter()
                        .map(|chunk_bytes| Shape {
                            chunk_bytes,
                            streams,
                            order,
                            ring_slots: slots + more,
                        }),
                );
            }
        }
    }
    shapes
}

fn chunks(args: &Args, job: &Job, best: &Shape) -> Vec<u64> {
    match args.chunk {
        Some(bytes) => vec![bytes as u64],
        None => {
            let powers = CHUNKS_TRIED.map(|power| 1 << power);
            let few = powers.filter(|bytes| *bytes < job.bytes_in);
            few.chain([best.chunk_bytes, job.bytes_in]).collect()
        }
    }
}

/// Memory that a shape takes.
#[derive(Clone, Copy)]
struct Needs {
    device_bytes: u64,
    pinned_bytes: u64,
}

impl Needs {
    const MOST: Self = Self {
        device_bytes: u64::MAX,
        pinned_bytes: u64::MAX,
    };

    fn of(shape: &Shape, job: &Job) -> Result<Self, PlanError> {
        Ok(Self {
            device_bytes: shape.device_bytes(job)?,
            pinned_bytes: shape.pinned_bytes(job)?,
        })
    }

    fn least(self, other: Self) -> Self {
        Self {
            device_bytes: self.device_bytes.min(other.device_bytes),
            pinned_bytes: self.pinned_bytes.min(other.pinned_bytes),
        }
    }

    fn fit(self, limits: &Limits) -> bool {
        self.device_bytes <= limits.device_bytes && self.pinned_bytes <= limits.pinned_bytes
    }

    /// Why nothing fits.
    fn refusal(self, limits: &Limits) -> UsageError {
        let (flag, needed, allowed) = if self.device_bytes > limits.device_bytes {
            ("--device-memory", self.device_bytes, limits.device_bytes)
        } else {
            ("--pinned-memory", self.pinned_bytes, limits.pinned_bytes)
        };
        UsageError::new(format!(
            "{flag}: the shape that --chunk, --streams and --order ask for needs {needed} bytes, \
             and {allowed} are allowed; choose a smaller --chunk or fewer --streams"
        ))
    }
}

//! What limits a plan, and what would help.

use serde::Serialize;

use super::predict::Sample;
use super::search::{Candidate, Search};
use super::with_memory;
use crate::cost_curve::clamp;
use crate::engine_rules::EngineKind;
use crate::pipeline::{Job, KernelTime, Memory, PipelineOrder, PlanError, Shape};
use crate::schedule::{HostState, Schedule, Work};
use crate::{Direction, HostKind};

/// A resource that a job uses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// The link towards the device.
    HostToDevice,
    /// The link towards the host.
    DeviceToHost,
    /// The compute engine.
    Compute,
    /// The express lane.
    Staging,
    /// The submitting thread.
    Host,
    /// None of them: they wait for each other.
    Latency,
}

/// What limits a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bottleneck {
    /// The busiest resource, if it is busy for more than two thirds of the time.
    pub resource: Resource,
    /// Share of the time that the busiest resource is busy, in thousandths.
    pub busy_permille: u64,
}

/// What would help.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Advice {
    /// Put input and output into pinned memory.
    Pin {
        /// Time saved, excluding the time to pin.
        saves_ns: u64,
    },
    /// Allow more streams.
    MoreStreams {
        /// Time saved.
        saves_ns: u64,
    },
    /// Allow larger chunks.
    LargerChunks {
        /// Time saved.
        saves_ns: u64,
    },
    /// Speed up the kernel.
    FasterKernel {
        /// Time saved by a kernel that takes no longer than its launch.
        saves_ns: u64,
    },
    /// Nothing helps: the link is busy all the time.
    NothingLinkIsFull,
    /// Nothing known helps.
    Nothing,
}

/// A resource this busy is the bottleneck.
const BUSY_PERMILLE: u64 = 667;
/// A link this busy is full.
const FULL_PERMILLE: u64 = 900;
/// This many streams can keep all engines busy.
const STREAMS_ENOUGH: u32 = 3;
/// Savings of less than one part in this many are not worth mentioning.
const WORTHWHILE: u64 = 50;

impl Bottleneck {
    pub(super) fn of(schedule: &Schedule) -> Self {
        let busy_ns = |kind| schedule.busy_ns(kind);
        let resources = [
            (Resource::HostToDevice, busy_ns(EngineKind::HostToDevice)),
            (Resource::DeviceToHost, busy_ns(EngineKind::DeviceToHost)),
            (Resource::Compute, busy_ns(EngineKind::Compute)),
            (Resource::Staging, express_ns(schedule)),
            (Resource::Host, submitting_ns(schedule)),
        ];
        // Of equally busy ones, the first.
        let busiest = resources.into_iter().rev().max_by_key(|it| it.1);
        let (mut resource, busy_ns) = busiest.expect("five resources");
        let whole_ns = u128::from(schedule.end_ns.max(1));
        let busy_permille = clamp(u128::from(busy_ns) * 1_000 / whole_ns);
        if busy_permille < BUSY_PERMILLE {
            resource = Resource::Latency;
        }
        Self {
            resource,
            busy_permille,
        }
    }
}

/// Time that the submitting thread, which is the first, is busy. It does the driver's copies from
/// and to pageable memory.
fn submitting_ns(schedule: &Schedule) -> u64 {
    let copied_ns = schedule.spans.iter().map(|span| match span.work {
        Work::Copy {
            direction: Direction::DeviceToHost,
            kind: HostKind::Pageable,
            ..
        } => span.end_ns - span.start_ns,
        _ => 0,
    });
    copied_ns.fold(thread_ns(schedule, 0), u64::saturating_add)
}

/// Time that the express lane is busy in its busier direction.
fn express_ns(schedule: &Schedule) -> u64 {
    let threads = 1..schedule.thread_ends_ns.len();
    let busy_ns = threads.map(|thread| thread_ns(schedule, thread));
    busy_ns.max().unwrap_or(0)
}

/// Time that a host thread is not waiting.
fn thread_ns(schedule: &Schedule, thread: usize) -> u64 {
    let spans = schedule.host_spans.iter();
    spans
        .filter(|span| span.thread as usize == thread && span.state != HostState::Waiting)
        .map(|span| span.end_ns - span.start_ns)
        .fold(0, u64::saturating_add)
}

impl Advice {
    pub(super) fn new(
        search: &mut Search<'_>,
        best: &Candidate,
        bottleneck: Bottleneck,
    ) -> Result<Self, PlanError> {
        let (job, shape) = (search.job, best.shape);
        let streams_at_most = search.limits.streams_at_most;
        let worth = |ns: u64| {
            let saves_ns = best.ns.saturating_sub(ns);
            (saves_ns > best.ns / WORTHWHILE).then_some(saves_ns)
        };
        let mut best_ns = |job: Job, streams_at_most: u32| {
            let asked = (search.job, search.limits);
            search.job = job;
            search.limits.streams_at_most = streams_at_most;
            let found = search.best_of(PipelineOrder::DepthFirst);
            (search.job, search.limits) = asked;
            Ok::<_, PlanError>(found?.map_or(u64::MAX, |found| found.ns))
        };
        let pinned = with_memory(&job, Memory::Pinned);
        if pinned != job
            && let Some(saves_ns) = worth(best_ns(pinned, streams_at_most)?)
        {
            return Ok(Self::Pin { saves_ns });
        }
        if streams_at_most < STREAMS_ENOUGH
            && let Some(saves_ns) = worth(best_ns(job, STREAMS_ENOUGH)?)
        {
            return Ok(Self::MoreStreams { saves_ns });
        }
        let larger = Shape {
            chunk_bytes: shape.chunk_bytes.saturating_mul(2).min(job.bytes_in),
            ..shape
        };
        if let Some(saves_ns) = worth(search.predictor.ns(&job, &larger, Sample::FULL)?) {
            return Ok(Self::LargerChunks { saves_ns });
        }
        if bottleneck.resource == Resource::Compute {
            let mut free = job;
            free.kernel = KernelTime::default();
            let ns = search.predictor.ns(&free, &shape, Sample::FULL)?;
            if let Some(saves_ns) = worth(ns) {
                return Ok(Self::FasterKernel { saves_ns });
            }
        }
        let link = matches!(
            bottleneck.resource,
            Resource::HostToDevice | Resource::DeviceToHost
        );
        if link && bottleneck.busy_permille >= FULL_PERMILLE {
            return Ok(Self::NothingLinkIsFull);
        }
        Ok(Self::Nothing)
    }
}

//! What limits a plan, and what would help.

use serde::Serialize;

use super::orders::{Found, Search};
use super::plan::with_memory;
use super::predict::Sample;
use crate::engine::Need;
use crate::pipeline::{KernelTime, Memory, Order, PlanError, Shape};
use crate::schedule::{HostState, Schedule, Work};
use crate::{Direction, HostKind};

/// A part that a job needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The link towards the device.
    HostToDevice,
    /// The link towards the host.
    DeviceToHost,
    /// The compute engine.
    Compute,
    /// The lanes that fill and empty rings.
    Staging,
    /// The launching thread.
    Host,
    /// None of them: all wait for each other.
    Latency,
}

/// What limits a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bottleneck {
    /// The part that is busy most of the time, if it is busy for more than two thirds of it.
    pub part: Part,
    /// How much of the time the busiest part is busy, in thousandths.
    pub busy_permille: u64,
}

/// What would help.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Advice {
    /// Input and output in pinned memory.
    Pin {
        /// Time that this saves, pinning not counted.
        saves_ns: u64,
    },
    /// More streams than the limits allow.
    MoreStreams {
        /// Time that this saves.
        saves_ns: u64,
    },
    /// Larger chunks than the limits allow.
    LargerChunks {
        /// Time that this saves.
        saves_ns: u64,
    },
    /// A faster kernel.
    FasterKernel {
        /// Time that a kernel saves which takes no time beside its launch.
        saves_ns: u64,
    },
    /// Nothing: the link is busy all the time.
    NothingLinkIsFull,
    /// Nothing that the model knows of.
    Nothing,
}

/// Busy enough to be what limits a plan.
const BUSY_PERMILLE: u64 = 667;
/// So busy that nothing else can help.
const FULL_PERMILLE: u64 = 900;
/// With so many streams all engines can be busy.
const STREAMS_ENOUGH: u32 = 3;
/// Savings below one in so many are not worth a word.
const WORTH: u64 = 50;

impl Bottleneck {
    pub(super) fn of(schedule: &Schedule) -> Self {
        let parts = [
            (Part::HostToDevice, schedule.busy_ns(Need::HostToDevice)),
            (Part::DeviceToHost, schedule.busy_ns(Need::DeviceToHost)),
            (Part::Compute, schedule.busy_ns(Need::Compute)),
            (Part::Staging, lanes_ns(schedule)),
            (Part::Host, launching_ns(schedule)),
        ];
        let mut busiest = (Part::Latency, 0);
        for part in parts {
            if part.1 > busiest.1 {
                busiest = part;
            }
        }
        let whole_ns = u128::from(schedule.end_ns.max(1));
        let permille = u128::from(busiest.1) * 1_000 / whole_ns;
        let busy_permille = u64::try_from(permille).unwrap_or(u64::MAX);
        Self {
            part: if busy_permille < BUSY_PERMILLE {
                Part::Latency
            } else {
                busiest.0
            },
            busy_permille,
        }
    }
}

/// What the launching thread, which is the first, is busy with. It does the driver's copies to
/// pageable memory itself, as it does those from there.
fn launching_ns(schedule: &Schedule) -> u64 {
    let copied = schedule.spans.iter().filter(|span| {
        matches!(
            span.work,
            Work::Copy {
                direction: Direction::DeviceToHost,
                kind: HostKind::Pageable,
                ..
            }
        )
    });
    let copied_ns = copied.map(|span| span.end_ns - span.start_ns);
    thread_ns(schedule, 0).saturating_add(copied_ns.fold(0, u64::saturating_add))
}

/// What the busier one of the threads is busy with that fill and empty rings.
fn lanes_ns(schedule: &Schedule) -> u64 {
    let threads = 1..schedule.thread_ends_ns.len();
    threads
        .map(|thread| thread_ns(schedule, thread))
        .max()
        .unwrap_or(0)
}

/// What a host thread does beside waiting.
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
        best: &Found,
        bottleneck: Bottleneck,
    ) -> Result<Self, PlanError> {
        let (job, shape) = (search.job, best.shape);
        let worth = |ns: u64| {
            let saves_ns = best.ns.saturating_sub(ns);
            (saves_ns > best.ns / WORTH).then_some(saves_ns)
        };
        let pinned = with_memory(&job, Memory::Pinned);
        if pinned != job {
            search.job = pinned;
            let found = search.order(Order::DepthFirst);
            search.job = job;
            if let Some(saves_ns) = found?.and_then(|found| worth(found.ns)) {
                return Ok(Self::Pin { saves_ns });
            }
        }
        if search.limits.streams_at_most < STREAMS_ENOUGH {
            let limits = search.limits;
            search.limits.streams_at_most = STREAMS_ENOUGH;
            let found = search.order(Order::DepthFirst);
            search.limits = limits;
            if let Some(saves_ns) = found?.and_then(|found| worth(found.ns)) {
                return Ok(Self::MoreStreams { saves_ns });
            }
        }
        let larger = Shape {
            chunk_bytes: shape.chunk_bytes.saturating_mul(2).min(job.bytes_in),
            ..shape
        };
        if let Some(saves_ns) = worth(search.predictor.ns(&job, &larger, Sample::FULL)?) {
            return Ok(Self::LargerChunks { saves_ns });
        }
        if bottleneck.part == Part::Compute {
            let mut free = job;
            free.kernel = KernelTime::default();
            let ns = search.predictor.ns(&free, &shape, Sample::FULL)?;
            if let Some(saves_ns) = worth(ns) {
                return Ok(Self::FasterKernel { saves_ns });
            }
        }
        let link = matches!(bottleneck.part, Part::HostToDevice | Part::DeviceToHost);
        if link && bottleneck.busy_permille >= FULL_PERMILLE {
            return Ok(Self::NothingLinkIsFull);
        }
        Ok(Self::Nothing)
    }
}

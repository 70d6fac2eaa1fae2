//! Measures every combination several times, each time in a different order, so that a machine that gets
//! slower or faster in the meantime affects all of them alike.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Context;
use pinlane_model::SplitMix64;
use pinlane_report::{Bench, CopyStats, MemoryKind, Route};

use crate::interrupt::Interrupt;
use crate::measure::{CopyCase, Meter};
use crate::progress::Progress;

/// Rounds on a real device; each measures every combination.
const ROUNDS: usize = 12;

const COPIES_PER_ROUND: usize = 160;

const LATENCY_BYTES: usize = 1;

/// What has been measured so far.
pub(super) struct Measured {
    /// Without figures.
    pub(super) report: Bench,
    combinations: Vec<Combination>,
    /// Why some combinations cannot be measured.
    refused: BTreeMap<(MemoryKind, Route), &'static str>,
    pub(super) progress: Progress,
}

struct Combination {
    case: CopyCase,
    /// Measures latency, apart from the sizes.
    latency: bool,
    times: Vec<u64>,
}

impl Measured {
    pub(super) fn new(report: Bench, progress: Progress) -> Self {
        Self {
            report,
            combinations: Vec::new(),
            refused: BTreeMap::new(),
            progress,
        }
    }

    /// The report with all figures so far.
    pub(super) fn report(&self) -> anyhow::Result<Bench> {
        let mut report = self.report.clone();
        for combination in &self.combinations {
            combination.push_to(&mut report)?;
        }
        for ((memory, route), reason) in &self.refused {
            let mut measured = self.combinations.iter().map(|it| it.case);
            let which = match measured.any(|case| (case.memory, case.route) == (*memory, *route)) {
                true => "small copies not measured",
                false => "not measured",
            };
            let (kind, direction) = (memory.name(), route.words());
            let note = format!("{kind}, {direction}: {which}: {reason}");
            report.notes.push(note);
        }
        Ok(report)
    }

    /// Adds combinations that the device can measure, and why it cannot measure others. Returns their indices.
    fn add(
        &mut self,
        meter: &Meter<'_>,
        kinds: &[MemoryKind],
        routes: &[Route],
        sizes: &[usize],
    ) -> Vec<usize> {
        let first = self.combinations.len();
        let latency = (first == 0).then_some(LATENCY_BYTES);
        for &memory in kinds {
            for &route in routes {
                let latency = latency.into_iter().map(|bytes| (bytes, true));
                for (bytes, latency) in latency.chain(sizes.iter().map(|bytes| (*bytes, false))) {
                    let case = CopyCase {
                        memory,
                        route,
                        bytes,
                    };
                    match meter.route_refusal(case) {
                        Some(reason) => {
                            self.refused.insert((memory, route), reason);
                        }
                        None => self.combinations.push(Combination {
                            case,
                            latency,
                            times: Vec::new(),
                        }),
                    }
                }
            }
        }
        (first..self.combinations.len()).collect()
    }
}

impl Combination {
    fn push_to(&self, report: &mut Bench) -> anyhow::Result<()> {
        if self.times.is_empty() {
            return Ok(());
        }
        let CopyCase {
            memory,
            route,
            bytes,
        } = self.case;
        let bytes = bytes as u64;
        let figure = CopyStats::from_times(route.moved(bytes), &self.times)
            .context("a copy took no time on this device's clock; choose another device")?;
        match self.latency {
            true => report.push_latency(memory, route, bytes, figure),
            false => report.push(memory, route, bytes, figure),
        }
        Ok(())
    }
}

/// Sizes that share their memory. A simulated device measures small copies before it has memory for large
/// ones, so that an interrupt finds results. A real one measures all sizes in turn.
pub(super) fn groups(sizes: &[usize], simulated: bool) -> Vec<&[usize]> {
    let (mut groups, mut rest) = (Vec::new(), sizes);
    while let Some(first) = rest.first() {
        let alike = |bytes: &usize| !simulated || *bytes < first.saturating_mul(2);
        let group;
        (group, rest) = rest.split_at(rest.partition_point(alike));
        groups.push(group);
    }
    groups
}

/// Allocates memory of each kind. Kinds that cannot be allocated are left out, with a note.
fn open(
    meter: &mut Meter<'_>,
    wanted: &[MemoryKind],
    routes: &[Route],
    interrupt: &Interrupt,
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<MemoryKind>> {
    let mut kinds = Vec::new();
    // The express lane first: it does not work at all without its pinned ring, and the other kinds may
    // leave no budget for that.
    let mut wanted = wanted.to_vec();
    wanted.sort_by_key(|kind| *kind != MemoryKind::Express);
    for kind in wanted {
        if interrupt.is_raised() {
            break;
        }
        let prepare = |meter: &mut Meter<'_>| meter.prepare(kind, routes);
        let prepared = meter.try_kind(kind, false, notes, prepare)?;
        kinds.extend(prepared.map(|()| kind));
    }
    kinds.sort_unstable();
    Ok(kinds)
}

/// What to measure besides the sizes.
pub(super) struct SweepPlan {
    pub(super) memory: Vec<MemoryKind>,
    pub(super) routes: Vec<Route>,
    pub(super) seed: u64,
    /// Time for all combinations; `None` measures each once.
    pub(super) time_ns: Option<u64>,
}

impl SweepPlan {
    /// Shows how many of the sizes and latencies are measured.
    pub(super) fn progress(&self, sizes: usize) -> Progress {
        let combinations = self.memory.len() * self.routes.len() * (sizes + 1);
        Progress::steps(combinations * self.rounds())
    }

    fn rounds(&self) -> usize {
        self.time_ns.map_or(1, |_| ROUNDS)
    }
}

/// Measures one group of sizes. `measured` is locked only to add results.
pub(super) fn run(
    meter: &mut Meter<'_>,
    sizes: &[usize],
    plan: &SweepPlan,
    measured: &Mutex<Measured>,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let lock = || {
        measured
            .lock()
            .expect("no thread panics while it holds the lock")
    };
    let mut notes = Vec::new();
    let kinds = open(meter, &plan.memory, &plan.routes, interrupt, &mut notes)?;
    let (mut order, budget_ns, progress);
    {
        let mut measured = lock();
        progress = measured.progress.clone();
        for note in notes {
            if !measured.report.notes.contains(&note) {
                measured.report.notes.push(note);
            }
        }
        order = measured.add(meter, &kinds, &plan.routes, sizes);
        budget_ns = plan
            .time_ns
            .map(|time_ns| time_ns / order.len().max(1) as u64);
        measured.report.budget_ns = budget_ns.unwrap_or(0);
    }
    let mut random = SplitMix64::new(plan.seed);
    for round in 0..plan.rounds() {
        random.shuffle(&mut order);
        for &index in &order {
            if interrupt.is_raised() {
                return Ok(());
            }
            let case = lock().combinations[index].case;
            progress.message(|| format!("{}, {}", case.memory.name(), case.route.words()));
            // The first copy is checked; with a budget it warms up.
            let ns = match round {
                0 => meter.check(case)?,
                _ => meter.sample(case)?,
            };
            let times = match budget_ns {
                None => vec![ns],
                Some(budget_ns) => {
                    let time = Duration::from_nanos(budget_ns / ROUNDS as u64);
                    sample_for(time, meter, case, interrupt)?
                }
            };
            lock().combinations[index].times.extend(times);
            progress.advance();
        }
    }
    Ok(())
}

/// Copies as often as the time allows, but at least once unless interrupted.
fn sample_for(
    time: Duration,
    meter: &mut Meter<'_>,
    case: CopyCase,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<u64>> {
    let start = Instant::now();
    let mut times = Vec::with_capacity(COPIES_PER_ROUND);
    while times.len() < COPIES_PER_ROUND && !interrupt.is_raised() {
        times.push(meter.sample(case)?);
        if start.elapsed() >= time {
            break;
        }
    }
    Ok(times)
}

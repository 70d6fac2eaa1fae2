//! Measures every combination several times, each time in a different order, so that a machine that gets
//! slower or faster in the meantime affects all of them alike.

use std::time::{Duration, Instant};

use anyhow::Context;
use pinlane_model::SplitMix64;
use pinlane_report::{Bench, CopyStats, MemoryKind, Route};

use crate::interrupt::Interrupt;
use crate::measure::{Meter, is_refusal};
use crate::terminal::Progress;

/// Rounds on a real device; each measures every combination.
const ROUNDS: usize = 12;

/// The most copies of one combination in one round.
const COPIES_PER_ROUND: usize = 160;

/// The size of a copy that measures latency.
const LATENCY_BYTES: usize = 1;

/// One combination to measure.
#[derive(Clone, Copy)]
pub(super) struct Case {
    memory: MemoryKind,
    route: Route,
    bytes: usize,
    /// Measures latency, apart from the sizes.
    latency: bool,
}

/// The number of measurement steps.
pub(super) fn steps(cases: usize, simulated: bool) -> usize {
    if simulated { cases } else { cases * ROUNDS }
}

/// Allocates memory of each kind. Kinds that cannot be allocated are left out, with a note.
pub(super) fn open(
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
        let name = kind.name();
        if let Some(reason) = meter.refusal(kind) {
            notes.push(format!("{name}: not measured: {reason}"));
            continue;
        }
        match meter.prepare(kind, routes) {
            Ok(()) => kinds.push(kind),
            Err(error) if is_refusal(&error) => {
                meter.close(kind);
                notes.push(format!("{name}: not measured: {error:#}"));
                continue;
            }
            Err(error) => return Err(error),
        }
        if let Some(remark) = meter.remark(kind) {
            notes.push(format!("{name}: {remark}"));
        }
    }
    kinds.sort_unstable();
    Ok(kinds)
}

/// All combinations that the device can measure, and notes on the others.
pub(super) fn cases(
    meter: &Meter<'_>,
    kinds: &[MemoryKind],
    routes: &[Route],
    sizes: &[usize],
    notes: &mut Vec<String>,
) -> Vec<Case> {
    let mut cases = Vec::new();
    for &memory in kinds {
        for &route in routes {
            let case = |bytes, latency| Case {
                memory,
                route,
                bytes,
                latency,
            };
            let mut wanted = vec![case(LATENCY_BYTES, true)];
            wanted.extend(sizes.iter().map(|bytes| case(*bytes, false)));
            let mut refused = None;
            wanted.retain(|case| {
                let reason = meter.route_refusal(memory, route, case.bytes);
                refused = refused.or(reason);
                reason.is_none()
            });
            if let Some(reason) = refused {
                let (kind, direction) = (memory.name(), route.words());
                let which = match wanted.len() {
                    0 => "not measured",
                    _ => "small copies not measured",
                };
                notes.push(format!("{kind}, {direction}: {which}: {reason}"));
            }
            cases.extend(wanted);
        }
    }
    cases
}

/// The cases and the times of their copies.
pub(super) struct Sweep<'m, 'd> {
    meter: &'m mut Meter<'d>,
    interrupt: &'m Interrupt,
    cases: Vec<Case>,
    times: Vec<Vec<u64>>,
    complete: bool,
}

impl<'m, 'd> Sweep<'m, 'd> {
    pub(super) fn new(
        meter: &'m mut Meter<'d>,
        cases: Vec<Case>,
        interrupt: &'m Interrupt,
    ) -> Self {
        Self {
            meter,
            interrupt,
            times: vec![Vec::new(); cases.len()],
            cases,
            complete: false,
        }
    }

    /// Measures each case for `budget_ns`, or once without a budget. Stops early on an interrupt.
    pub(super) fn run(
        &mut self,
        seed: u64,
        budget_ns: Option<u64>,
        progress: &Progress,
    ) -> anyhow::Result<()> {
        let mut random = SplitMix64::new(seed);
        let rounds = budget_ns.map_or(1, |_| ROUNDS);
        let mut order: Vec<usize> = (0..self.cases.len()).collect();
        for round in 0..rounds {
            random.shuffle(&mut order);
            for &index in &order {
                if self.interrupt.is_raised() {
                    return Ok(());
                }
                let case = self.cases[index];
                progress.message(|| format!("{}, {}", case.memory.name(), case.route.words()));
                match budget_ns {
                    None => self.measure_once(index)?,
                    Some(budget_ns) => {
                        let time = Duration::from_nanos(budget_ns / ROUNDS as u64);
                        self.measure_for(index, time, round == 0)?;
                    }
                }
                progress.advance();
            }
        }
        self.complete = true;
        Ok(())
    }

    /// Uses the time of the one copy that is checked.
    fn measure_once(&mut self, index: usize) -> anyhow::Result<()> {
        let case = self.cases[index];
        let ns = self.meter.check(case.memory, case.route, case.bytes)?;
        self.times[index].push(ns);
        Ok(())
    }

    /// After a warm-up copy, copies as often as the time allows, but at least once.
    fn measure_for(&mut self, index: usize, time: Duration, first: bool) -> anyhow::Result<()> {
        let case = self.cases[index];
        let (memory, route, bytes) = (case.memory, case.route, case.bytes);
        match first {
            true => self.meter.check(memory, route, bytes)?,
            false => self.meter.sample(memory, route, bytes)?,
        };
        let start = Instant::now();
        for _ in 0..COPIES_PER_ROUND {
            if self.interrupt.is_raised() {
                break;
            }
            let ns = self.meter.sample(memory, route, bytes)?;
            self.times[index].push(ns);
            if start.elapsed() >= time {
                break;
            }
        }
        Ok(())
    }

    /// Adds the results to the report.
    pub(super) fn fill(&self, report: &mut Bench) -> anyhow::Result<()> {
        for (case, times) in self.cases.iter().zip(&self.times) {
            if times.is_empty() {
                continue;
            }
            let bytes = case.bytes as u64;
            let figure = CopyStats::from_times(case.route.moved(bytes), times)
                .context("a copy took no time on this device's clock; choose another device")?;
            match case.latency {
                true => report.push_latency(case.memory, case.route, bytes, figure),
                false => report.push(case.memory, case.route, bytes, figure),
            }
        }
        report.complete = self.complete && !self.interrupt.is_raised();
        Ok(())
    }
}

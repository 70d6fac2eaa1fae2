//! The measuring: every combination several times over, each time in another order, so that a
//! machine that gets slower or faster meanwhile does so for all of them alike.

use std::time::{Duration, Instant};

use anyhow::Context;
use pinlane_report::{Bench, CopyStats, MemoryKind, Route};

use super::points::Point;
use crate::compare::is_refusal;
use crate::interrupt::Interrupt;
use crate::measure::Meter;
use crate::progress::Progress;
use crate::random::Random;

/// How often each combination has its turn, where time is real.
const ROUNDS: usize = 12;

/// Copies of one turn at most: more say nothing new.
const COPIES_A_TURN: usize = 160;

/// Turns of so many combinations.
pub(super) fn steps(points: usize, simulated: bool) -> usize {
    match simulated {
        true => points,
        false => points * ROUNDS,
    }
}

/// Get memory of each kind. Those that cannot be had are left out, with a note.
pub(super) fn open(
    meter: &mut Meter<'_>,
    wanted: &[MemoryKind],
    routes: &[Route],
    interrupt: &Interrupt,
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<MemoryKind>> {
    let mut kinds = Vec::new();
    // What the lanes pin for themselves comes first: without it they are no lanes, whereas the
    // others miss out one by one.
    let is_lanes = |kind: &MemoryKind| *kind == MemoryKind::Express;
    let (lanes, others): (Vec<_>, Vec<_>) = wanted.iter().copied().partition(is_lanes);
    for kind in lanes.into_iter().chain(others) {
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

/// Combinations, and the times that their copies took.
pub(super) struct Sweep<'m, 'd> {
    meter: &'m mut Meter<'d>,
    interrupt: &'m Interrupt,
    points: Vec<Point>,
    times: Vec<Vec<u64>>,
    complete: bool,
}

impl<'m, 'd> Sweep<'m, 'd> {
    pub(super) fn new(
        meter: &'m mut Meter<'d>,
        points: Vec<Point>,
        interrupt: &'m Interrupt,
    ) -> Self {
        Self {
            meter,
            interrupt,
            times: vec![Vec::new(); points.len()],
            points,
            complete: false,
        }
    }

    /// Measure, each combination for `budget_ns`, or once where there is no real time. Ends early
    /// when the user wants it.
    pub(super) fn run(
        &mut self,
        seed: u64,
        budget_ns: Option<u64>,
        progress: &Progress,
    ) -> anyhow::Result<()> {
        let mut random = Random::new(seed);
        let rounds = budget_ns.map_or(1, |_| ROUNDS);
        let mut order: Vec<usize> = (0..self.points.len()).collect();
        for round in 0..rounds {
            random.shuffle(&mut order);
            for &at in &order {
                if self.interrupt.is_raised() {
                    return Ok(());
                }
                let point = self.points[at];
                progress.begin(|| format!("{}, {}", point.memory.name(), point.route.words()));
                match budget_ns {
                    None => self.once(at)?,
                    Some(budget_ns) => {
                        let turn = Duration::from_nanos(budget_ns / ROUNDS as u64);
                        self.turn(at, turn, round == 0)?;
                    }
                }
                progress.step();
            }
        }
        self.complete = true;
        Ok(())
    }

    /// The one copy that is checked is the one that counts.
    fn once(&mut self, at: usize) -> anyhow::Result<()> {
        let Point {
            memory,
            route,
            bytes,
            ..
        } = self.points[at];
        let ns = self.meter.check(memory, route, bytes)?;
        self.times[at].push(ns);
        Ok(())
    }

    /// As many copies as the time allows, behind one that warms up; at least one.
    fn turn(&mut self, at: usize, turn: Duration, first: bool) -> anyhow::Result<()> {
        let Point {
            memory,
            route,
            bytes,
            ..
        } = self.points[at];
        match first {
            true => self.meter.check(memory, route, bytes)?,
            false => self.meter.sample(memory, route, bytes)?,
        };
        let began = Instant::now();
        for _ in 0..COPIES_A_TURN {
            if self.interrupt.is_raised() {
                break;
            }
            let ns = self.meter.sample(memory, route, bytes)?;
            self.times[at].push(ns);
            if began.elapsed() >= turn {
                break;
            }
        }
        Ok(())
    }

    /// Put what was measured into the report.
    pub(super) fn tell(&self, report: &mut Bench) -> anyhow::Result<()> {
        for (point, times) in self.points.iter().zip(&self.times) {
            if times.is_empty() {
                continue;
            }
            let bytes = point.bytes as u64;
            let figure = CopyStats::from_times(point.route.moved(bytes), times)
                .context("a copy took no time on this device's clock; choose another device")?;
            match point.latency {
                true => report.push_latency(point.memory, point.route, bytes, figure),
                false => report.push(point.memory, point.route, bytes, figure),
            }
        }
        report.complete = self.complete && !self.interrupt.is_raised();
        Ok(())
    }
}

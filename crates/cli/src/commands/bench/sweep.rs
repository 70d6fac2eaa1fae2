//! Measures every combination several times, each time in a different order, so that a machine that gets
//! slower or faster in the meantime affects all of them alike.

use std::time::{Duration, Instant};

use anyhow::Context;
use pinlane_model::SplitMix64;
use pinlane_report::{Bench, CopyStats, MemoryKind, Route};

use crate::interrupt::Interrupt;
use crate::measure::{CopyCase, Meter};
use crate::terminal::Progress;

/// Rounds on a real device; each measures every combination.
const ROUNDS: usize = 12;

const COPIES_PER_ROUND: usize = 160;

const LATENCY_BYTES: usize = 1;

pub(super) struct Combination {
    case: CopyCase,
    /// Measures latency, apart from the sizes.
    latency: bool,
    times: Vec<u64>,
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
        let prepare = |meter: &mut Meter<'_>| meter.prepare(kind, routes);
        let prepared = meter.try_kind(kind, false, notes, prepare)?;
        kinds.extend(prepared.map(|()| kind));
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
) -> Vec<Combination> {
    let mut cases = Vec::new();
    for &memory in kinds {
        for &route in routes {
            let combination = |bytes, latency| Combination {
                case: CopyCase {
                    memory,
                    route,
                    bytes,
                },
                latency,
                times: Vec::new(),
            };
            let mut wanted = vec![combination(LATENCY_BYTES, true)];
            wanted.extend(sizes.iter().map(|bytes| combination(*bytes, false)));
            let mut refused = None;
            wanted.retain(|wanted| {
                let reason = meter.route_refusal(wanted.case);
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

/// Measures each case for `budget_ns`, or once without a budget. Returns whether no interrupt stopped it early.
pub(super) fn run(
    meter: &mut Meter<'_>,
    cases: &mut [Combination],
    seed: u64,
    budget_ns: Option<u64>,
    interrupt: &Interrupt,
) -> anyhow::Result<bool> {
    let mut random = SplitMix64::new(seed);
    let rounds = budget_ns.map_or(1, |_| ROUNDS);
    let progress = Progress::steps(cases.len() * rounds);
    let mut order: Vec<usize> = (0..cases.len()).collect();
    for round in 0..rounds {
        random.shuffle(&mut order);
        for &index in &order {
            if interrupt.is_raised() {
                return Ok(false);
            }
            let Combination { case, times, .. } = &mut cases[index];
            progress.message(|| format!("{}, {}", case.memory.name(), case.route.words()));
            // The first copy is checked; with a budget it warms up.
            let ns = match round {
                0 => meter.check(*case)?,
                _ => meter.sample(*case)?,
            };
            match budget_ns {
                None => times.push(ns),
                Some(budget_ns) => {
                    let time = Duration::from_nanos(budget_ns / ROUNDS as u64);
                    sample_for(time, meter, *case, times, interrupt)?;
                }
            }
            progress.advance();
        }
    }
    Ok(!interrupt.is_raised())
}

/// Copies as often as the time allows, but at least once.
fn sample_for(
    time: Duration,
    meter: &mut Meter<'_>,
    case: CopyCase,
    times: &mut Vec<u64>,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let start = Instant::now();
    for _ in 0..COPIES_PER_ROUND {
        if interrupt.is_raised() {
            break;
        }
        times.push(meter.sample(case)?);
        if start.elapsed() >= time {
            break;
        }
    }
    Ok(())
}

pub(super) fn fill(report: &mut Bench, cases: &[Combination]) -> anyhow::Result<()> {
    let measured = cases
        .iter()
        .filter(|combination| !combination.times.is_empty());
    for Combination {
        case,
        latency,
        times,
    } in measured
    {
        let (memory, route, bytes) = (case.memory, case.route, case.bytes as u64);
        let figure = CopyStats::from_times(route.moved(bytes), times)
            .context("a copy took no time on this device's clock; choose another device")?;
        match latency {
            true => report.push_latency(memory, route, bytes, figure),
            false => report.push(memory, route, bytes, figure),
        }
    }
    Ok(())
}

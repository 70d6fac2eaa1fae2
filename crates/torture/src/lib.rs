//! Random programs against the simulated GPU.
//!
//! A seed decides everything: the program, the device's schedule and the injected faults. Whatever the
//! schedule, device memory must look as if the program's operations had run one after the other. The
//! library guarantees that order, across streams as well, so every byte read back is compared with
//! a shadow copy. In addition, the simulator must find no misuse, and nothing may be leaked.
//!
//! ```text
//!   run(seed) ── Program ── picks Actions ── Device (library) ── Sim (seeded schedule, faults)
//!                   └────── Shadow: what each byte must be, or "unknown" after a failed write
//! ```
#![forbid(unsafe_code)]

mod actions;
mod expected_memory;
mod express_actions;
mod program_state;
mod virtual_time_executor;

use std::collections::BTreeMap;

use pinlane::{Budget, Device, Platform};
use pinlane_model::SplitMix64;
use pinlane_sim::{FaultKind, Faults, Sim};

use program_state::Program;

/// The result of one seed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Hash of all calls, times and results.
    pub trace_hash: u64,
    /// Submitted transfers.
    pub transfers: u64,
    /// Bytes compared with the shadow.
    pub bytes_checked: u64,
    /// Injected faults.
    pub faults: BTreeMap<FaultKind, u64>,
    /// Devices lost to a fault. The program continues with a new one.
    pub deaths: u64,
}

impl Outcome {
    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Self) {
        self.transfers += other.transfers;
        self.bytes_checked += other.bytes_checked;
        self.deaths += other.deaths;
        for (kind, count) in &other.faults {
            *self.faults.entry(*kind).or_default() += count;
        }
    }
}

/// Transfers of a run, at least.
pub const TRANSFERS: u64 = 200;

/// Runs the program of `seed`, with a new device after each fatal fault.
///
/// # Errors
/// A description of what went wrong.
pub fn run(seed: u64) -> Result<Outcome, String> {
    // Differs from the simulator's own numbers of the same seed.
    let mut random = SplitMix64::new(seed ^ 0x5eed_0fa9_0914_0000);
    let faults = faults(&mut random);
    let mut outcome = Outcome::default();
    while outcome.transfers < TRANSFERS {
        let sim = Sim::builder()
            .seed(random.next_u64())
            .faults(faults)
            .idle_progress(false)
            .build();
        run_on_device(&sim, &mut random, &mut outcome)?;
        let findings = sim.finish();
        if !findings.is_empty() {
            let list: Vec<String> = findings.iter().map(ToString::to_string).collect();
            return Err(format!("the simulator found misuse: {}", list.join("; ")));
        }
        outcome.trace_hash = outcome.trace_hash.rotate_left(1) ^ sim.trace_hash();
        for (kind, count) in sim.faults_hit() {
            *outcome.faults.entry(kind).or_default() += count;
        }
    }
    Ok(outcome)
}

/// Runs on one device, to the end of the program or a fatal fault.
fn run_on_device(sim: &Sim, random: &mut SplitMix64, outcome: &mut Outcome) -> Result<(), String> {
    let device = match sim.open(0) {
        // A budget of its own: devices of one budget free each other's idle memory.
        Ok(driver) => Device::with_budget(driver, &Budget::with_limit(u64::MAX)),
        Err(_) => {
            outcome.deaths += 1; // lost before it was opened
            return Ok(());
        }
    };
    // Two in three cache freed device memory.
    device.keep_device_memory([0, 4096, u64::MAX][random.index(3)]);
    // And one in two reuses pinned memory; of the others the simulator sees what is freed too early. No limit
    // in between: which memory is idle for longest depends on real time.
    device.keep_pinned_memory([0, u64::MAX][random.index(2)]);
    let mut program = Program::new(sim, device, random);
    let ended = program.run(TRANSFERS - outcome.transfers);
    outcome.transfers += program.transfers;
    outcome.bytes_checked += program.bytes_checked;
    outcome.deaths += u64::from(program.died);
    ended
}

/// One third of the programs has no faults, one third non-fatal ones, the rest all kinds.
fn faults(random: &mut SplitMix64) -> Faults {
    match random.below(3) {
        0 => Faults::none(),
        1 => Faults::all(5)
            .with(FaultKind::LateError, 0)
            .with(FaultKind::LostDevice, 0)
            .with(FaultKind::StuckCompletion, 0),
        _ => Faults::all(2).with(FaultKind::LostDevice, 1),
    }
}

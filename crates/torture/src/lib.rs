//! Random programs against the simulated GPU.
//!
//! A seed decides everything: what the program does, in which order the device runs it, and which
//! faults strike. The oracle is simple: whatever the schedule, device memory must look as if the
//! program's operations had run one after the other. The library promises just that (order across
//! streams is right by construction), so every byte that comes back is compared with a shadow
//! copy. Beside it, the simulator must find no misuse, and nothing may be left in the end.
//!
//! ```text
//!   run(seed) ── Program ── picks Actions ── Device (library) ── Sim (seeded schedule, faults)
//!                   └────── Shadow: what each byte must be, or "unknown" after a failed write
//! ```
#![forbid(unsafe_code)]

mod actions;
mod executor;
mod express;
mod program;
mod shadow;

use std::collections::BTreeMap;

use pinlane::Device;
use pinlane_model::{Profile, SplitMix64};
use pinlane_sim::{FaultKind, Faults, Sim};

use program::Program;

/// What a run of one seed showed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Hash over all calls, times and outcomes.
    pub trace_hash: u64,
    /// Transfers that were submitted.
    pub transfers: u64,
    /// Bytes that were compared with the shadow.
    pub bytes_checked: u64,
    /// Faults that struck.
    pub faults: BTreeMap<FaultKind, u64>,
    /// Devices that a fault killed. The program then goes on with a new one.
    pub deaths: u64,
}

/// Transfers that a run submits.
pub const TRANSFERS: u64 = 200;

/// Run the program of `seed`, on as many devices as it takes.
///
/// # Errors
/// What was wrong, in words.
pub fn run(seed: u64) -> Result<Outcome, String> {
    // Differs from the simulator's own numbers of the same seed.
    let mut random = SplitMix64::new(seed ^ 0x5eed_0fa9_0914_0000);
    let faults = faults(&mut random);
    let mut outcome = Outcome::default();
    while outcome.transfers < TRANSFERS {
        let sim = Sim::builder()
            .profile(Profile::builtin("pcie3-x16").expect("built in"))
            .seed(random.next_u64())
            .faults(faults)
            .idle_progress(false)
            .build();
        live(&sim, &mut random, &mut outcome)?;
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

/// One device's life: to the end of the program, or to a fatal fault.
fn live(sim: &Sim, random: &mut SplitMix64, outcome: &mut Outcome) -> Result<(), String> {
    let device = match Device::open(sim, 0) {
        Ok(device) => device,
        Err(_) => {
            outcome.deaths += 1; // lost before it was opened
            return Ok(());
        }
    };
    // Two in three keep some device memory for later buffers.
    device.keep_device_memory([0, 4096, u64::MAX][random.index(3)]);
    let mut program = Program::new(sim, device, random);
    let ended = program.run(TRANSFERS - outcome.transfers);
    outcome.transfers += program.transfers;
    outcome.bytes_checked += program.bytes_checked;
    outcome.deaths += u64::from(program.died());
    ended
}

/// A third of the programs meets no fault, a third those that can be survived, the rest all.
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

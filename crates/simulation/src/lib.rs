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
mod choice;
mod executor;
mod program;
mod shadow;

use std::collections::BTreeMap;

use pinlane_model::Profile;
use pinlane_sim::{FaultKind, Faults, Sim};

use choice::Choice;
use program::Program;

/// What a run of one seed showed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Hash over all calls, times and outcomes.
    pub trace_hash: u64,
    /// Transfers that were submitted.
    pub transfers: u64,
    /// Bytes that were compared with the shadow.
    pub bytes_checked: u64,
    /// Faults that struck.
    pub faults: BTreeMap<FaultKind, u64>,
    /// Whether a fault killed the device before the program had ended.
    pub died: bool,
}

/// Transfers that a run attempts unless the device dies before.
pub const TRANSFERS: u64 = 200;

/// Run the program of `seed`.
///
/// # Errors
/// What was wrong, in words.
pub fn run(seed: u64) -> Result<Outcome, String> {
    let mut choice = Choice::new(seed);
    let sim = Sim::builder()
        .profile(Profile::builtin("pcie3-x16").expect("built in"))
        .seed(seed)
        .faults(faults(&mut choice))
        .idle_progress(false)
        .build();
    let mut program = Program::new(&sim, choice)?;
    let ended = program.run(TRANSFERS);
    let (transfers, bytes_checked) = program.counts();
    let died = program.died();
    drop(program);
    ended?;

    let findings = sim.finish();
    if !findings.is_empty() {
        let list: Vec<String> = findings.iter().map(ToString::to_string).collect();
        return Err(format!("the simulator found misuse: {}", list.join("; ")));
    }
    Ok(Outcome {
        trace_hash: sim.trace_hash(),
        transfers,
        bytes_checked,
        faults: sim.faults_hit(),
        died,
    })
}

/// A third of the programs meets no fault, a third those that can be survived, the rest all.
fn faults(choice: &mut Choice) -> Faults {
    match choice.below(3) {
        0 => Faults::none(),
        1 => Faults::all(5)
            .with(FaultKind::LateError, 0)
            .with(FaultKind::LostDevice, 0)
            .with(FaultKind::StuckCompletion, 0),
        _ => Faults::all(2).with(FaultKind::LostDevice, 1),
    }
}

//! 2,000 random programs, each with the schedule and the faults of its seed. Plain `cargo test` runs
//! 100 of them.

use pinlane_sim::FaultKind;
use pinlane_testing::full_or;
use pinlane_torture::{Outcome, TRANSFERS, run};

fn run_or_panic(seed: u64) -> Outcome {
    run(seed).unwrap_or_else(|wrong| {
        panic!("seed {seed}: {wrong}\nreplay with: cargo xtask seeds --seed {seed}")
    })
}

#[test]
fn programs_behave_under_every_schedule_and_fault() {
    let seeds = full_or(2000, 100);
    let mut total = Outcome::default();
    for seed in 0..seeds {
        let outcome = run_or_panic(seed);
        assert!(outcome.transfers >= TRANSFERS, "seed {seed}");
        total.add(&outcome);
    }
    let (faults, deaths, compared) = (total.faults, total.deaths, total.bytes_checked);
    println!("{seeds} programs, {compared} bytes compared, {deaths} devices lost, {faults:?}");
    for kind in FaultKind::ALL {
        assert!(
            faults.get(&kind).is_some_and(|&hit| hit > 0),
            "{kind:?} was never injected"
        );
    }
    assert!(compared > 1000 * seeds, "too few bytes were compared");
}

#[test]
fn same_seed_same_trace() {
    for seed in 0..200 {
        assert_eq!(run_or_panic(seed), run_or_panic(seed), "seed {seed}");
    }
    assert_ne!(run_or_panic(0).trace_hash, run_or_panic(1).trace_hash);
}

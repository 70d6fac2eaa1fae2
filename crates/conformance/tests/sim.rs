//! The whole suite on the simulated GPU: on every profile, and with schedules chosen by seeds.
//!
//! Plain `cargo test` runs one profile and one seed; the others need `PINLANE_TEST=full`.

use pinlane_conformance::{Verdict, run_case, suite};
use pinlane_model::Profile;
use pinlane_sim::{Sim, SimBuilder};

/// Runs each case on a machine of its own. It must pass and leak nothing, and the simulator must
/// report misuse exactly where the case misuses the driver on purpose.
fn all_pass(builder: impl Fn() -> SimBuilder) {
    let mut wrong = Vec::new();
    for case in suite() {
        let sim = builder().record_timeline(false).build();
        let result = run_case(&case, &sim, 0);
        if result.verdict != Verdict::Passed {
            wrong.push(format!("{}: {:?}", case.name, result.verdict));
        }
        let during = sim.findings();
        if case.misuse == during.is_empty() {
            wrong.push(format!("{}: found {during:?}", case.name));
        }
        let left_over = &sim.finish()[during.len()..];
        if !left_over.is_empty() {
            wrong.push(format!("{}: left over {left_over:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn profile(name: &str) -> Profile {
    Profile::builtin(name).expect("a built-in profile")
}

fn passes_on(name: &str) {
    all_pass(|| Sim::builder().profile(profile(name)));
}

fn passes_with_seed(seed: u64) {
    all_pass(|| Sim::builder().profile(profile("pcie3-x16")).seed(seed));
}

#[test]
fn every_builtin_profile_is_tested_here() {
    let names: Vec<_> = Profile::builtin_names().collect();
    assert_eq!(
        names,
        ["pcie3-x16", "pcie4-x16", "pcie5-x16", "h200", "null"]
    );
}

#[test]
fn pcie3_x16() {
    passes_on("pcie3-x16");
}

#[test]
fn seed_1() {
    passes_with_seed(1);
}

/// Defines tests that only a full run includes.
macro_rules! full_tests {
    ($($name:ident => $run:expr;)*) => {$(
        /// Runs only with `PINLANE_TEST=full`.
        #[test]
        fn $name() {
            if !pinlane_testing::skip_slow_test() {
                $run;
            }
        }
    )*};
}

full_tests! {
    pcie4_x16 => passes_on("pcie4-x16");
    pcie5_x16 => passes_on("pcie5-x16");
    h200 => passes_on("h200");
    null => passes_on("null");
    seed_2 => passes_with_seed(2);
    seed_3 => passes_with_seed(3);
    seed_4 => passes_with_seed(4);
}

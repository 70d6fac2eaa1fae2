//! The whole suite on the simulated GPU: every profile, and schedules that seeds choose.

use pinlane_conformance::{Verdict, run_case, suite};
use pinlane_model::Profile;
use pinlane_sim::{Sim, SimBuilder};

/// Every case on a machine of its own: it passes, leaves nothing behind, and the simulator reports
/// misuse where there is some, and only there.
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

fn seed(seed: u64) {
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
    all_pass(|| Sim::builder().profile(profile("pcie3-x16")));
}

#[test]
fn pcie4_x16() {
    all_pass(|| Sim::builder().profile(profile("pcie4-x16")));
}

#[test]
fn pcie5_x16() {
    all_pass(|| Sim::builder().profile(profile("pcie5-x16")));
}

#[test]
fn h200() {
    all_pass(|| Sim::builder().profile(profile("h200")));
}

#[test]
fn null() {
    all_pass(|| Sim::builder().profile(profile("null")));
}

#[test]
fn seed_1() {
    seed(1);
}

#[test]
fn seed_2() {
    seed(2);
}

#[test]
fn seed_3() {
    seed(3);
}

#[test]
fn seed_4() {
    seed(4);
}

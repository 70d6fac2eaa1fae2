//! The rendered self-test.

use pinlane_report::{Environment, Origin, Selftest, SelftestCase, SelftestVerdict};

fn case(name: &str, verdict: SelftestVerdict) -> SelftestCase {
    SelftestCase {
        name: name.into(),
        verdict,
    }
}

fn run() -> Selftest {
    let mut run = Selftest::new(Origin::new("Simulated GPU", Some("h200".into())));
    run.push(case("a/b", SelftestVerdict::Passed));
    run.push(case("c/d", SelftestVerdict::Failed("wrong".into())));
    run.push(case("e/f", SelftestVerdict::Skipped("not there".into())));
    run
}

#[test]
fn lines_and_summary() {
    let mut run = run();
    run.findings.push("leak of 3 bytes".into());
    let text: String = run.cases.iter().map(SelftestCase::to_text).collect();
    assert_eq!(
        text + &run.summary(),
        "ok       a/b\n\
         FAILED   c/d: wrong\n\
         skipped  e/f: not there\n\
         FINDING  leak of 3 bytes\n\
         1 passed, 1 failed, 1 skipped\n\
         SIMULATED: sim:h200, not a real GPU\n"
    );
}

#[test]
fn a_failure_or_a_finding_is_not_good() {
    assert!(!run().is_good());
    let mut clean = Selftest::new(Origin::new("GPU", None));
    clean.push(case("a/b", SelftestVerdict::Passed));
    assert!(clean.is_good());
    clean.findings.push("leak".into());
    assert!(!clean.is_good());
}

#[test]
fn json_carries_every_case() {
    let json: serde_json::Value =
        serde_json::from_str(&run().to_json(&Environment::default())).expect("valid JSON");
    assert_eq!(json["origin"], "SIMULATED");
    assert_eq!(json["failed"], 1);
    assert_eq!(json["cases"][0]["verdict"], "passed");
    assert_eq!(json["cases"][1]["reason"], "wrong");
    assert_eq!(json["cases"][2]["verdict"], "skipped");
}

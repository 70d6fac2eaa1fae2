//! `pinlane selftest`

use std::ops::ControlFlow;

use pinlane_conformance::{CaseResult, Verdict};
use pinlane_report::{Origin, Selftest, SelftestCase, SelftestVerdict};

use crate::args;
use crate::device::{self, Choice, Target};
use crate::output::{Output, UsageError};

pub(crate) fn run(
    choice: &Choice,
    args: &args::Selftest,
    json: bool,
    output: &mut Output,
) -> anyhow::Result<bool> {
    let target = device::open(
        choice,
        |sim| match args.seed {
            Some(seed) => sim.seed(seed),
            None => sim,
        },
        args.seed.map(|_| "--seed"),
    )?;
    let report = run_suite(&target, args.filter.as_deref(), json, output)?;
    if report.cases.is_empty() {
        let text = args.filter.as_deref().unwrap_or_default();
        return Err(UsageError::new(format!("no case is called like --filter {text}")).into());
    }
    output.print(&if json {
        report.to_json()
    } else {
        report.summary()
    })?;
    Ok(report.is_good())
}

fn run_suite(
    target: &Target,
    filter: Option<&str>,
    json: bool,
    output: &mut Output,
) -> anyhow::Result<Selftest> {
    let devices = target.platform().devices()?;
    let info = &devices[target.ordinal() as usize];
    let mut report = Selftest::new(Origin::new(&info.name, info.simulated.clone()));
    let mut judge = Judge::new(target);
    let mut printed = Ok(());
    pinlane_conformance::run(target.platform(), target.ordinal(), filter, &mut |result| {
        let case = SelftestCase {
            name: result.name.to_owned(),
            verdict: judge.verdict(result),
        };
        if !json {
            printed = output.print(&case.to_text());
        }
        report.push(case);
        // Nobody reads any more: no need to go on.
        match printed {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    printed?;
    report.findings = judge.left_over();
    Ok(report)
}

/// Adds to each verdict what the simulator found while the case ran.
struct Judge<'t> {
    target: &'t Target,
    seen: usize,
}

impl<'t> Judge<'t> {
    fn new(target: &'t Target) -> Self {
        Self { target, seen: 0 }
    }

    /// A finding fails a case of correct use, and is what a case of misuse is about.
    fn verdict(&mut self, result: &CaseResult) -> SelftestVerdict {
        let findings = self.new_findings();
        match &result.verdict {
            Verdict::Failed(reason) => SelftestVerdict::Failed(reason.clone()),
            Verdict::Skipped(reason) => SelftestVerdict::Skipped((*reason).to_owned()),
            Verdict::Passed if result.misuse => match (self.target.sim(), findings.is_empty()) {
                (Some(_), true) => {
                    SelftestVerdict::Failed("the simulator did not report the misuse".to_owned())
                }
                _ => SelftestVerdict::Passed,
            },
            Verdict::Passed if findings.is_empty() => SelftestVerdict::Passed,
            Verdict::Passed => {
                SelftestVerdict::Failed(format!("the simulator found: {}", findings.join("; ")))
            }
        }
    }

    /// What is still there after the last case.
    fn left_over(&mut self) -> Vec<String> {
        self.target.sim().map_or_else(Vec::new, |sim| {
            let all = sim.finish();
            all.iter()
                .skip(self.seen)
                .map(ToString::to_string)
                .collect()
        })
    }

    fn new_findings(&mut self) -> Vec<String> {
        self.target.sim().map_or_else(Vec::new, |sim| {
            let all = sim.findings();
            let new = all
                .iter()
                .skip(self.seen)
                .map(ToString::to_string)
                .collect();
            self.seen = all.len();
            new
        })
    }
}

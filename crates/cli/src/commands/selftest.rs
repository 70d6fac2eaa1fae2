//! `pinlane selftest`: the conformance suite.

use std::ops::ControlFlow;

use pinlane_conformance::{CaseResult, Verdict};
use pinlane_report::{Origin, Selftest, SelftestCase, SelftestVerdict};

use crate::cli::Cli;
use crate::device::Backend;
use crate::output::UsageError;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// On a simulated device, use the random schedule of this seed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

pub(crate) fn run(args: &Args, cli: &mut Cli<'_>) -> anyhow::Result<bool> {
    let backend = cli.device.open(|sim| match args.seed {
        Some(seed) => sim.seed(seed),
        None => sim,
    })?;
    if args.seed.is_some() && backend.sim().is_none() {
        return Err(UsageError::new("--seed needs a simulated device; add --device sim").into());
    }
    let report = run_suite(&backend, args.filter.as_deref(), cli)?;
    if report.cases.is_empty() {
        let text = args.filter.as_deref().unwrap_or_default();
        return Err(UsageError::new(format!("no case matches --filter {text}")).into());
    }
    cli.report(|| report.to_json(), || report.summary())?;
    Ok(report.is_good())
}

fn run_suite(
    backend: &Backend,
    filter: Option<&str>,
    cli: &mut Cli<'_>,
) -> anyhow::Result<Selftest> {
    let (platform, ordinal) = (backend.platform(), backend.ordinal());
    let info = &platform.devices()?[ordinal as usize];
    let mut report = Selftest::new(Origin::new(&info.name, info.simulated.clone()));
    let mut judge = Judge::new(backend);
    let mut printed = Ok(());
    pinlane_conformance::run(platform, ordinal, filter, &mut |result| {
        let case = SelftestCase {
            name: result.name.to_owned(),
            verdict: judge.verdict(result),
        };
        if !cli.json {
            printed = cli.output.print(&case.to_text());
        }
        report.push(case);
        // Stop when the reader of the output is gone.
        match printed {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    printed?;
    report.findings = judge.leaks();
    Ok(report)
}

/// Adds the simulator's findings to the verdict of each case.
struct Judge<'b> {
    backend: &'b Backend,
    /// Findings already attributed to a case.
    findings: usize,
}

impl<'b> Judge<'b> {
    fn new(backend: &'b Backend) -> Self {
        Self {
            backend,
            findings: 0,
        }
    }

    /// A finding fails a case of correct use; a case of misuse must produce one.
    fn verdict(&mut self, result: &CaseResult) -> SelftestVerdict {
        let findings = self.new_findings();
        match &result.verdict {
            Verdict::Failed(reason) => SelftestVerdict::Failed(reason.clone()),
            Verdict::Skipped(reason) => SelftestVerdict::Skipped((*reason).to_owned()),
            Verdict::Passed if result.misuse => match (self.backend.sim(), findings.is_empty()) {
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

    /// Findings after the last case, such as leaks.
    fn leaks(&mut self) -> Vec<String> {
        let all = self.backend.sim().map(|sim| sim.finish());
        let new = all.iter().flatten().skip(self.findings);
        new.map(ToString::to_string).collect()
    }

    fn new_findings(&mut self) -> Vec<String> {
        let all = self.backend.sim().map(|sim| sim.findings());
        let new = all.iter().flatten().skip(self.findings);
        let new: Vec<_> = new.map(ToString::to_string).collect();
        self.findings += new.len();
        new
    }
}

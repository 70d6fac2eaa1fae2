//! `pinlane selftest`: the conformance suite.

use std::ops::ControlFlow;

use pinlane_conformance::{CaseResult, Verdict};
use pinlane_report::{Selftest, SelftestCase, SelftestVerdict};
use pinlane_sim::{Finding, Sim};

use crate::command_context::CommandContext;
use crate::device::{self, Backend};
use crate::input_error::UsageError;
use crate::output;
use crate::parse::number;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// On a simulated device, use the random schedule of this seed
    #[arg(long, value_name = "N", value_parser = number::within::<u64>(0..=u64::MAX))]
    seed: Option<u64>,
}

pub(crate) fn run(args: &Args, context: &CommandContext<'_>) -> anyhow::Result<bool> {
    let backend = context.device.open(|sim| match args.seed {
        Some(seed) => sim.seed(seed),
        None => sim,
    })?;
    if args.seed.is_some() && backend.sim.is_none() {
        let reason = "--seed needs a simulated device; add --device sim";
        return Err(UsageError(reason.to_owned()).into());
    }
    let report = run_suite(&backend, args.filter.as_deref(), context)?;
    if report.cases.is_empty() {
        let text = args.filter.as_deref().unwrap_or_default();
        return Err(UsageError(format!("no case matches --filter {text}")).into());
    }
    context.report(
        |environment| report.to_json(environment),
        || report.summary(),
    )?;
    Ok(report.is_good())
}

fn run_suite(
    backend: &Backend,
    filter: Option<&str>,
    context: &CommandContext<'_>,
) -> anyhow::Result<Selftest> {
    let (platform, ordinal) = (&*backend.platform, backend.ordinal);
    let info = &platform.devices()?[ordinal as usize];
    let mut report = Selftest::new(device::origin(info));
    let sim = backend.sim.as_ref();
    // Findings that no earlier case caused.
    let mut known = 0;
    let mut new = |all: Option<Vec<Finding>>| -> Vec<String> {
        let new = all.iter().flatten().skip(known).map(ToString::to_string);
        let new: Vec<_> = new.collect();
        known += new.len();
        new
    };
    let mut printed = Ok(());
    pinlane_conformance::run(platform, ordinal, filter, &mut |result| {
        let findings = new(sim.map(Sim::findings));
        let case = SelftestCase {
            name: result.name.to_owned(),
            verdict: verdict(result, sim, &findings),
        };
        if !context.json {
            printed = output::print(&case.to_text());
        }
        report.push(case);
        // Stop when the reader of the output is gone.
        match printed {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    printed?;
    // Such as leaks.
    report.findings = new(sim.map(Sim::finish));
    Ok(report)
}

/// The verdict on a case, with the simulator's findings: one fails a case of correct use; a case of misuse must
/// produce one.
fn verdict(result: &CaseResult, sim: Option<&Sim>, findings: &[String]) -> SelftestVerdict {
    match &result.verdict {
        Verdict::Failed(reason) => SelftestVerdict::Failed(reason.clone()),
        Verdict::Skipped(reason) => SelftestVerdict::Skipped((*reason).to_owned()),
        Verdict::Passed if result.misuse && sim.is_some() && findings.is_empty() => {
            SelftestVerdict::Failed("the simulator did not report the misuse".to_owned())
        }
        Verdict::Passed if result.misuse || findings.is_empty() => SelftestVerdict::Passed,
        Verdict::Passed => {
            SelftestVerdict::Failed(format!("the simulator found: {}", findings.join("; ")))
        }
    }
}

//! `pinlane doctor`: whether this machine is set up for fast transfers.
//!
//! ```text
//!   facts/    what the system, the driver and the management library report   (changes nothing)
//!   checks/   facts -> findings; pure functions, one file per group
//! ```

mod checks;
mod facts;
#[cfg(test)]
mod tests;

use pinlane_report::{Doctor, Origin};

use crate::cli::Cli;
use crate::terminal;
use facts::Facts;

#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, cli: &Cli<'_>) -> anyhow::Result<bool> {
    let report = examine(&Facts::gather(cli.device));
    cli.report(
        || report.to_json(),
        || report.to_text(terminal::doctor_look()),
    )?;
    Ok(report.is_good())
}

fn examine(facts: &Facts) -> Doctor {
    let gpus = &facts.gpus.gpus;
    let origin = gpus.first().map(|gpu| {
        let info = &gpu.info;
        Origin::new(&info.name, info.simulated.clone())
    });
    let names = gpus.iter().map(|gpu| gpu.info.name.clone()).collect();
    Doctor::new(origin, names, checks::run_all(facts))
}

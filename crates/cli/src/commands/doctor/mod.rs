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

use pinlane_report::Doctor;

use crate::command_context::CommandContext;
use crate::{device, terminal};
use facts::Facts;

pub(crate) fn run(context: &CommandContext<'_>) -> anyhow::Result<bool> {
    let report = examine(&Facts::gather(context.device));
    let text = || report.to_text(terminal::doctor_look());
    context.report(|environment| report.to_json(environment), text)?;
    Ok(report.is_good())
}

fn examine(facts: &Facts) -> Doctor {
    let gpus = &facts.gpus.gpus;
    let origin = gpus.first().map(|gpu| device::origin(&gpu.info));
    let names = gpus.iter().map(|gpu| gpu.info.name.clone()).collect();
    Doctor::new(origin, names, checks::run_all(facts))
}

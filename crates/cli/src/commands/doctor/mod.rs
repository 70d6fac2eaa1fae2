//! `pinlane doctor`: whether this machine is set up for fast transfers.
//!
//! ```text
//!   facts/    what the system, the driver and the management library say   (looks, changes nothing)
//!   checks/   facts -> findings, pure functions, a file a group
//! ```

mod checks;
pub(crate) mod facts;
#[cfg(test)]
mod tests;

use pinlane_report::{Doctor, Origin};

use crate::device::Choice;
use crate::output::Output;
use crate::terminal;
use facts::Facts;

/// The words of `pinlane doctor`: none of its own.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(
    choice: &Choice,
    _args: &Args,
    json: bool,
    output: &mut Output,
) -> anyhow::Result<bool> {
    let report = examine(&Facts::gather(choice));
    output.print(&if json {
        report.to_json()
    } else {
        report.to_text(terminal::doctor_look())
    })?;
    Ok(report.is_good())
}

fn examine(facts: &Facts) -> Doctor {
    let gpus = &facts.gpus.gpus;
    let origin = gpus.first().map(|gpu| {
        let info = &gpu.info;
        Origin::new(&info.name, info.simulated.clone())
    });
    let names = gpus.iter().map(|gpu| gpu.info.name.clone()).collect();
    Doctor::new(origin, names, checks::all(facts))
}

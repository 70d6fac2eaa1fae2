//! `pinlane boost`: runs an unmodified program with its pageable copies on the express lane.

mod gains;

use std::ffi::OsString;
use std::process::ExitStatus;

use pinlane_boost_files::{Counter, Direction, variables};

use crate::command_context::CommandContext;
use crate::output;
use crate::preload::{PreloadedProgram, ProgramRun};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print at the end what was gained
    #[arg(long)]
    stats: bool,

    /// Also serve pinned memory: large blocks are page-locked faster than by the driver
    #[arg(long)]
    pinning: bool,

    /// Do not preload the library into programs that the program starts
    #[arg(long)]
    no_children: bool,

    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &CommandContext<'_>) -> anyhow::Result<ExitStatus> {
    let mut program = PreloadedProgram::new(&args.command, context)?;
    if args.pinning {
        program.set(variables::PINNING, "1");
    }
    if args.no_children {
        program.set(variables::CHILDREN, "0");
    }
    let run = program.run()?;
    if let Some(reason) = &run.not_seen {
        output::complain(&format!("boost: no copies were seen: {reason}"));
    } else if !run.processes.is_empty() {
        say_what_was_gained(args, context, &run)?;
    }
    Ok(run.status)
}

/// On standard error, since standard output is the program's; JSON on standard output.
fn say_what_was_gained(
    args: &Args,
    context: &CommandContext<'_>,
    run: &ProgramRun,
) -> anyhow::Result<()> {
    let counters = run.counters();
    if !args.stats {
        let boosted: u64 = Direction::ALL
            .map(|direction| counters.boosted(Counter::BoostedCopies, direction))
            .iter()
            .sum();
        let seen = counters.copies_seen();
        output::complain(&format!(
            "boost: {boosted} of {seen} copies between host and device over the express lane"
        ));
        return Ok(());
    }
    let report = gains::report(&args.command, context, &counters);
    match context.json {
        true => output::print(&report.to_json(&context.environment())),
        false => {
            output::write_to_stderr(&report.to_text());
            Ok(())
        }
    }
}

//! `pinlane trace`: runs an unmodified program and reports its copies, pinned memory and waits.
//!
//! ```text
//!   Recording ──┬── sites       call sites with their costs
//!               ├── findings/   what is wrong
//!               └── chart       the timeline
//! ```

mod chart;
mod costs;
mod findings;
mod place;
mod sites;
mod source_lines;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;

use pinlane_boost_files::trace::{MAX_EVENTS, PythonLines, Recording, read_traces};
use pinlane_boost_files::variables;
use pinlane_report::ProgramTrace;
use pinlane_report::timeline::{Exporter, Trace};

use crate::command_context::CommandContext;
use crate::preload::{self, PreloadedProgram};
use crate::{output, output_file, terminal};
use costs::Costs;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Call sites to show
    #[arg(long, default_value_t = 10, value_name = "N")]
    top: usize,

    /// Write the report as an HTML page
    #[arg(long, value_name = "FILE", value_parser = output_file::parse)]
    html: Option<PathBuf>,

    /// Write all calls as a trace for Perfetto (ui.perfetto.dev) or chrome://tracing
    #[arg(long, value_name = "FILE", value_parser = output_file::parse)]
    trace: Option<PathBuf>,

    /// Do not trace programs that the program starts
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
    let files = [("--html", &args.html), ("--trace", &args.trace)];
    output_file::check(&files, context.device.file())?;
    let mut program = PreloadedProgram::new(&args.command, context)?;
    let folder = program.folder().to_owned();
    program.set(variables::TRACE_FOLDER, &folder);
    // The trace is of the program's own copies.
    program.set(variables::BOOST, "0");
    if args.no_children {
        program.set(variables::CHILDREN, "0");
    }
    let run = program.run()?;
    // Without files the program's exit status is left.
    let mut recordings = read_traces(&folder).unwrap_or_default();
    if recordings.is_empty() {
        if let Some(reason) = &run.not_seen {
            output::complain(&format!("trace: no calls were seen: {reason}"));
        } else if !run.processes.is_empty() {
            let folder = folder.parent().unwrap_or(&folder).display();
            output::complain(&format!(
                "trace: calls were seen but not recorded; 16 MB must fit into {folder}, or set TMPDIR to another folder"
            ));
        }
        return Ok(run.status);
    }
    source_lines::resolve(&mut recordings);
    // The program has run: whatever fails now must not hide how it ended.
    match report(args, context, &recordings) {
        Err(error) if !output::is_broken_pipe(&error) => {
            output::complain(&format!("error: {error:#}"))
        }
        _ => (),
    }
    Ok(run.status)
}

fn report(
    args: &Args,
    context: &CommandContext<'_>,
    recordings: &[Recording],
) -> anyhow::Result<()> {
    let (origin, profile) = preload::machine(context.device);
    let costs = Costs {
        profile: profile.as_ref(),
        is_measured: origin.is_measured(),
    };
    let words: Vec<_> = args
        .command
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    let report = ProgramTrace {
        command: words.join(" "),
        processes: recordings.len() as u64,
        calls: total(recordings, |recording| recording.calls),
        elapsed_ns: elapsed_ns(recordings).filter(|_| costs.is_measured),
        sites: sites::sites(recordings, &costs),
        findings: findings::findings(recordings, &costs),
        profile: profile.as_ref().map(|profile| profile.name.clone()),
        notes: notes(recordings),
        top: args.top,
        origin: origin.clone(),
    };
    // The report first: a file that cannot be written must not lose it.
    match context.json {
        true => output::print(&report.to_json(&context.environment()))?,
        false => output::write_to_stderr(&terminal::wrapped(&report.to_text())),
    }
    output_file::write_given(&args.html, || report.to_html(&context.environment()))?;
    if let Some(path) = &args.trace {
        let chart = chart::chart(recordings, &costs, origin);
        output_file::write(path, |out| Trace.export(&chart, out))?;
    }
    Ok(())
}

fn total(recordings: &[Recording], count: impl Fn(&Recording) -> u64) -> u64 {
    recordings.iter().map(count).fold(0, u64::saturating_add)
}

/// From the first call of any process to the last end.
fn elapsed_ns(recordings: &[Recording]) -> Option<u64> {
    let start_ns = recordings
        .iter()
        .map(|recording| recording.start_ns)
        .min()?;
    let ends = recordings.iter().map(|recording| {
        let last = recording.events.last();
        let last_ns = last.map_or(recording.start_ns, |event| {
            event.start_ns.saturating_add(event.ns)
        });
        recording.end_ns.unwrap_or(last_ns)
    });
    Some(ends.max()?.saturating_sub(start_ns))
}

/// What the trace does not know.
fn notes(recordings: &[Recording]) -> Vec<String> {
    let mut notes = Vec::new();
    let not_stored = total(recordings, Recording::calls_not_stored);
    if not_stored > 0 {
        notes.push(format!(
            "Only the first {MAX_EVENTS} calls of a process are kept one by one: findings and timeline lack {not_stored} later \
             ones, which the totals of sites include"
        ));
    }
    if recordings
        .iter()
        .any(|recording| recording.python == PythonLines::UnknownVersion)
    {
        notes.push(
            "No Python lines: they are known for Python 3.11 to 3.13, with its global lock".into(),
        );
    }
    let killed = recordings
        .iter()
        .filter(|recording| recording.end_ns.is_none())
        .count();
    if killed > 0 {
        notes.push(format!(
            "Not ended by exit(): {killed} of {} traced",
            recordings.len()
        ));
    }
    notes
}

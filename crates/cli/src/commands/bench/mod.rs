//! `pinlane bench`: copies of many sizes.

mod sweep;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use anyhow::Context;
use pinlane_report::{Bench, BenchComparison, MemoryKind, Route};

use crate::command_context::CommandContext;
use crate::device::DeviceChoice;
use crate::input_error::UsageError;
use crate::interrupt::Interrupt;
use crate::measure::{self, Meter};
use crate::output;
use crate::output_file::{self, write_given};
use crate::parse::{List, duration, number, size};
use crate::{clock, device};
use sweep::{Measured, SweepPlan};

/// Default sizes. A simulated device moves real bytes, so its range is smaller.
const SIZES: &str = "4KiB..256MiB*4";
const SIZES_SIMULATED: &str = "4KiB..64MiB*4";

/// The largest file that --against reads; far more than any report needs.
const AGAINST_BYTES_MAX: u64 = 64 << 20;

#[derive(Clone, clap::Args)]
pub(crate) struct Args {
    /// Sizes of copies: a list such as 4KiB,1MiB or a range such as 4KiB..256MiB
    ///
    /// A range doubles from one size to the next; 4KiB..256MiB*4 grows by a factor of four. Lists may
    /// contain ranges. [default: 4KiB..256MiB*4, on a simulated device 4KiB..64MiB*4]
    #[arg(long, value_name = "SIZES", value_parser = size::parse_list)]
    sizes: Option<List<usize>>,

    /// Kinds of memory, separated by commas: pageable, pinned, registered, write-combined, mapped,
    /// express, or all
    #[arg(long, default_value = "all", value_name = "KINDS", value_parser = parse_kinds)]
    memory: List<MemoryKind>,

    /// Directions, separated by commas: h2d, d2h, both, or all
    #[arg(long, default_value = "all", value_name = "ROUTES", value_parser = parse_routes)]
    routes: List<Route>,

    /// Total time to measure, such as 10s, shared equally by all combinations
    ///
    /// Each combination is measured 12 to 1920 times, or once on a simulated device, whose copies always
    /// take the same time.
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = duration)]
    time: u64,

    /// Seed of the order in which combinations are measured
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = number::within::<u64>(0..=u64::MAX))]
    seed: u64,

    /// Write all figures as CSV; `-` prints them instead of the table
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Write the charts as an SVG image
    #[arg(long, value_name = "FILE", value_parser = output_file::parse)]
    svg: Option<PathBuf>,

    /// Write the report as a self-contained HTML page
    #[arg(long, value_name = "FILE", value_parser = output_file::parse)]
    html: Option<PathBuf>,

    /// Compare with an earlier run, written with `pinlane --json bench > FILE`
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,

    /// Exit with status 1 if a copy is slower than in the earlier run by more than this percentage
    /// and by more than the noise of both runs
    #[arg(long, value_name = "PERCENT", requires = "against", value_parser = parse_percent)]
    fail_if_slower: Option<f64>,
}

pub(crate) fn run(args: &Args, context: &CommandContext<'_>) -> anyhow::Result<bool> {
    let csv_to_stdout = args.csv.as_deref() == Some(Path::new("-"));
    if csv_to_stdout && context.json {
        let reason = "--csv - and --json cannot both use standard output; pass a file to --csv";
        return Err(UsageError(reason.to_owned()).into());
    }
    let csv = args.csv.clone().filter(|_| !csv_to_stdout);
    let (svg, html) = (&args.svg, &args.html);
    let flags = [("--csv", &csv), ("--svg", svg), ("--html", html)];
    let inputs = context
        .device
        .file()
        .into_iter()
        .chain(args.against.as_deref());
    output_file::check(&flags, inputs)?;
    let earlier = args.against.as_deref().map(read_earlier).transpose()?;
    let interrupt = Interrupt::listen()?;
    let (report, abandoned) = measure(args, context, &interrupt)?;
    let compared = earlier.map(|(file, earlier)| BenchComparison::new(&earlier, &report, file));
    let page = || match &compared {
        None => report.to_html(&context.environment()),
        Some(compared) => compared.to_html(&report, &context.environment()),
    };
    let written = write_given(&csv, || report.to_csv())
        .and_then(|()| write_given(svg, || report.to_svg()))
        .and_then(|()| write_given(html, page));
    match &compared {
        _ if csv_to_stdout => output::print(&report.to_csv())?,
        None => context.report(
            |environment| report.to_json(environment),
            || report.to_text(),
        )?,
        Some(compared) => context.report(
            |environment| compared.to_json(&report, environment),
            || format!("{}{}", report.to_text(), compared.to_text(&report.origin)),
        )?,
    }
    // The results are printed even if a file cannot be written.
    written?;
    if !csv_to_stdout {
        context.written([&csv, &args.svg, &args.html])?;
    }
    let mut good = report.complete && !report.lines.is_empty();
    if !report.complete {
        output::complain("interrupted before the end");
    } else if report.lines.is_empty() {
        output::complain("nothing was measured; choose other --memory or --routes");
    }
    if let (Some(compared), Some(percent)) = (&compared, args.fail_if_slower) {
        if compared.is_slower_by(percent) {
            output::complain(&format!(
                "copies are slower than in the earlier run by more than --fail-if-slower {percent}"
            ));
            good = false;
        }
        if compared.changes.is_empty() {
            output::complain(
                "--fail-if-slower has nothing to compare; choose --sizes, --memory and --routes of \
                 the --against run",
            );
            good = false;
        }
    }
    if abandoned {
        Interrupt::exit();
    }
    Ok(good)
}

/// Measures on a thread of its own, so that an interrupt does not wait for the copy under way. Returns the
/// results so far, and whether the thread was left behind.
fn measure(
    args: &Args,
    context: &CommandContext<'_>,
    interrupt: &Interrupt,
) -> anyhow::Result<(Bench, bool)> {
    let measured = Arc::new(OnceLock::new());
    let sweep = {
        let (args, device) = (args.clone(), context.device.clone());
        let (measured, interrupt) = (Arc::clone(&measured), interrupt.clone());
        move || sweep(&args, &device, &measured, &interrupt)
    };
    let ended = interrupt.run(sweep);
    let abandoned = ended.is_none();
    ended.transpose()?;
    let measured = measured.get();
    let measured = measured.context("interrupted before the device was open")?;
    let measured = measured
        .lock()
        .expect("no thread panics while it holds the lock");
    measured.progress.clear();
    let mut report = measured.report()?;
    report.complete = !abandoned && !interrupt.is_raised();
    Ok((report, abandoned))
}

fn sweep(
    args: &Args,
    device: &DeviceChoice,
    measured: &OnceLock<Mutex<Measured>>,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let backend = device.open_for_timing()?;
    let device = backend.device()?;
    let simulated = device.info().simulated.is_some();
    let default_sizes = if simulated { SIZES_SIMULATED } else { SIZES };
    let default_sizes = || size::parse_list(default_sizes).expect("valid sizes");
    let sizes = args.sizes.clone().unwrap_or_else(default_sizes);
    // No date on a simulated device, where all runs are the same.
    let date = (!simulated).then(clock::utc_now);
    let report = Bench::new(device::origin(device.info()), date, args.seed, 0);
    let plan = SweepPlan {
        memory: args.memory.clone(),
        routes: args.routes.clone(),
        seed: args.seed,
        time_ns: (!simulated).then_some(args.time),
    };
    let progress = plan.progress(sizes.len());
    let measured = measured.get_or_init(|| Mutex::new(Measured::new(report, progress)));
    let largest = sizes.last().copied().unwrap_or(1);
    measure::check_memory(&device, largest).context("--sizes")?;
    for sizes in sweep::groups(&sizes, simulated) {
        let largest = sizes.last().copied().unwrap_or(1);
        if interrupt.is_raised() {
            break;
        }
        let mut meter = Meter::new(&backend, &device, largest).context("--sizes")?;
        sweep::run(&mut meter, sizes, &plan, measured, interrupt)?;
    }
    Ok(())
}

/// Reads an earlier run. Also returns its file name.
fn read_earlier(path: &Path) -> Result<(String, Bench), UsageError> {
    let file = path.display().to_string();
    let invalid = |reason: String| UsageError(format!("--against {file}: {reason}"));
    let unreadable = |error| invalid(format!("cannot be read: {error}"));
    let mut text = Vec::new();
    let opened = File::open(path).map_err(unreadable)?;
    let mut limited = opened.take(AGAINST_BYTES_MAX + 1);
    limited.read_to_end(&mut text).map_err(unreadable)?;
    if text.len() as u64 > AGAINST_BYTES_MAX {
        return Err(invalid("too large for a report".to_owned()));
    }
    let text = String::from_utf8(text).map_err(|_| invalid("not a text file".to_owned()))?;
    let advice = "write one with `pinlane --json bench > FILE`";
    let bench = Bench::from_json(&text);
    let bench = bench.map_err(|error| invalid(format!("{error}; {advice}")))?;
    Ok((file, bench))
}

fn parse_kinds(text: &str) -> Result<List<MemoryKind>, String> {
    parse_list(text, &MemoryKind::ALL, MemoryKind::name)
}

fn parse_routes(text: &str) -> Result<List<Route>, String> {
    parse_list(text, &Route::ALL, Route::name)
}

/// Parses names to distinct items, in the order of the tables.
fn parse_list<T: Copy>(
    text: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<List<T>, String> {
    let names: Vec<_> = text.split(',').map(str::trim).collect();
    let known: Vec<_> = all.iter().map(|item| name(*item)).collect();
    let is_known = |wanted: &str| wanted == "all" || known.contains(&wanted);
    if let Some(unknown) = names.iter().find(|wanted| !is_known(wanted)) {
        let known = known.join(", ");
        return Err(format!(
            "`{unknown}` is unknown; use a comma-separated list of {known}, or all"
        ));
    }
    let is_wanted = |item: &T| names.contains(&"all") || names.contains(&name(*item));
    Ok(all.iter().copied().filter(is_wanted).collect())
}

/// Parses a percentage; more than 100 is allowed.
fn parse_percent(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let number = text.strip_suffix('%').unwrap_or(text).trim_end().parse();
    match number {
        Ok(percent) if (0.0..=1e6).contains(&percent) => Ok(percent),
        _ => Err("must be a percentage of at least 0, such as 5".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_come_in_any_order() {
        let kinds = parse_kinds("express, pinned,pinned").expect("known");
        assert_eq!(kinds, [MemoryKind::Pinned, MemoryKind::Express]);
        for text in ["all", "both,all"] {
            assert_eq!(parse_routes(text).expect("known"), Route::ALL);
        }
    }

    #[test]
    fn an_error_lists_the_known_names() {
        for text in ["", "pinned,", "Pinned", "fast", "pinned express"] {
            let error = parse_kinds(text).expect_err("rejected");
            assert!(error.contains("write-combined"), "{text}: {error}");
        }
        assert!(parse_routes("up").is_err());
    }

    #[test]
    fn percentages() {
        assert_eq!(parse_percent("5"), Ok(5.0));
        assert_eq!(parse_percent(" 2.5 %"), Ok(2.5));
        for text in ["", "-1", "nan", "inf", "%", "5%%", "x"] {
            assert!(parse_percent(text).is_err(), "{text}");
        }
    }
}

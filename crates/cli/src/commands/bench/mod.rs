//! `pinlane bench`: copies of many sizes.

mod against;
mod parse;
mod sweep;

use std::path::PathBuf;

use anyhow::Context;
use pinlane_report::Bench;

use crate::cli::Cli;
use crate::clock::HostClock;
use crate::interrupt::Interrupt;
use crate::measure::Meter;
use crate::output::{self, UsageError};
use crate::output_file::{self, write_given};
use crate::parse::duration;
use crate::parse::size::{self, Sizes};
use crate::progress::Progress;
use crate::{date, device};
use against::EarlierRun;
use parse::{Kinds, Routes};
use sweep::Sweep;

/// Default sizes. A simulated device moves real bytes, so its range is smaller.
const SIZES: &str = "4KiB..256MiB*4";
const SIZES_SIMULATED: &str = "4KiB..64MiB*4";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Sizes of copies: a list such as 4KiB,1MiB or a range such as 4KiB..256MiB
    ///
    /// A range doubles from one size to the next; 4KiB..256MiB*4 grows by a factor of four. Lists may
    /// contain ranges. [default: 4KiB..256MiB*4, on a simulated device 4KiB..64MiB*4]
    #[arg(long, value_name = "SIZES", value_parser = size::parse_list)]
    sizes: Option<Sizes>,

    /// Kinds of memory, separated by commas: pageable, pinned, registered, write-combined, mapped,
    /// express, or all
    #[arg(long, default_value = "all", value_name = "KINDS", value_parser = parse::kinds)]
    memory: Kinds,

    /// Directions, separated by commas: h2d, d2h, both, or all
    #[arg(long, default_value = "all", value_name = "ROUTES", value_parser = parse::routes)]
    routes: Routes,

    /// Total time to measure, such as 10s, shared equally by all combinations
    ///
    /// Each combination is measured 12 to 1920 times, or once on a simulated device, whose copies always
    /// take the same time.
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = duration::parse)]
    time: u64,

    /// Seed of the order in which combinations are measured
    #[arg(long, default_value_t = 0, value_name = "N")]
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
    #[arg(long, value_name = "PERCENT", requires = "against", value_parser = parse::percent)]
    fail_if_slower: Option<f64>,
}

pub(crate) fn run(args: &Args, cli: &mut Cli<'_>) -> anyhow::Result<bool> {
    let csv_to_stdout = args
        .csv
        .as_deref()
        .is_some_and(|path| path.as_os_str() == "-");
    if csv_to_stdout && cli.json {
        return Err(UsageError::new(
            "--csv - and --json cannot both use standard output; pass a file to --csv",
        )
        .into());
    }
    let csv = args.csv.clone().filter(|_| !csv_to_stdout);
    output_file::check(
        &[
            ("--csv", &csv),
            ("--svg", &args.svg),
            ("--html", &args.html),
        ],
        cli.device.file().into_iter().chain(args.against.as_deref()),
    )?;
    let earlier = args.against.as_deref().map(EarlierRun::read).transpose()?;
    let interrupt = Interrupt::listen()?;
    let report = measure(args, cli, &interrupt)?;
    let written = write_given(&csv, || report.to_csv())
        .and_then(|()| write_given(&args.svg, || report.to_svg()))
        .and_then(|()| write_given(&args.html, || report.to_html()));
    let compared = earlier.map(|earlier| earlier.compare(&report));
    match &compared {
        _ if csv_to_stdout => cli.output.print(&report.to_csv())?,
        None => cli.report(|| report.to_json(), || report.to_text())?,
        Some(compared) => cli.report(
            || compared.to_json(&report),
            || format!("{}{}", report.to_text(), compared.to_text(&report.origin)),
        )?,
    }
    // The results are printed even if a file cannot be written.
    written?;
    if !csv_to_stdout {
        cli.written([&csv, &args.svg, &args.html])?;
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
    Ok(good)
}

fn measure(args: &Args, cli: &Cli<'_>, interrupt: &Interrupt) -> anyhow::Result<Bench> {
    let backend = cli.device.open_for_timing()?;
    let device = backend.device()?;
    let simulated = device.info().simulated.is_some();
    let default_sizes = if simulated { SIZES_SIMULATED } else { SIZES };
    let sizes = args.sizes.clone();
    let Sizes(sizes) =
        sizes.unwrap_or_else(|| size::parse_list(default_sizes).expect("valid sizes"));
    let largest = sizes.last().copied().unwrap_or(1);
    // No date on a simulated device, where all runs are the same.
    let date = (!simulated).then(date::now);
    let mut report = Bench::new(device::origin(&device), date, args.seed, 0);
    if interrupt.is_raised() {
        return Ok(report);
    }
    let clock = HostClock::of(&backend);
    let mut meter = Meter::new(&device, clock, backend.profile(), largest).context("--sizes")?;
    let (memory, routes) = (&args.memory.0, &args.routes.0);
    let kinds = sweep::open(&mut meter, memory, routes, interrupt, &mut report.notes)?;
    let cases = sweep::cases(&meter, &kinds, routes, &sizes, &mut report.notes);
    if !simulated {
        report.budget_ns = args.time / cases.len().max(1) as u64;
    }
    let progress = Progress::steps(sweep::steps(cases.len(), simulated));
    let mut sweep = Sweep::new(&mut meter, cases, interrupt);
    let budget_ns = (!simulated).then_some(report.budget_ns);
    sweep.run(args.seed, budget_ns, &progress)?;
    sweep.fill(&mut report)?;
    Ok(report)
}

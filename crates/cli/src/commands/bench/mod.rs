//! `pinlane bench`

mod against;
mod points;
mod sweep;
mod words;

use std::path::PathBuf;

use anyhow::Context;
use pinlane::Device;
use pinlane_report::{Bench, Origin};

use crate::device::Choice;
use crate::interrupt::Interrupt;
use crate::measure::{Clock, Meter};
use crate::output::{self, Output, UsageError};
use crate::progress::Progress;
use crate::sizes::{self, Sizes};
use crate::{date, device, duration, file};
use against::Earlier;
use sweep::Sweep;
use words::{Kinds, Routes};

/// Sizes where none are given. A simulated device moves real bytes, but no more than needed.
const SIZES: &str = "4KiB..256MiB*4";
const SIZES_SIMULATED: &str = "4KiB..64MiB*4";

/// The words of `pinlane bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Bytes of one copy: a list such as 4KiB,1MiB, or a range such as 4KiB..256MiB
    ///
    /// A range doubles from one size to the next; 4KiB..256MiB*4 grows by a factor of four. Lists
    /// may hold ranges. [default: 4KiB..256MiB*4, on a simulated device 4KiB..64MiB*4]
    #[arg(long, value_name = "SIZES", value_parser = sizes::parse)]
    sizes: Option<Sizes>,

    /// Kinds of memory, separated by commas: pageable, pinned, registered, write-combined, mapped,
    /// express, or all
    #[arg(long, default_value = "all", value_name = "KINDS", value_parser = words::kinds)]
    memory: Kinds,

    /// Directions, separated by commas: h2d, d2h, both, or all
    #[arg(long, default_value = "all", value_name = "ROUTES", value_parser = words::routes)]
    routes: Routes,

    /// Time for all measurements together, such as 10s; each combination gets the same part of it
    ///
    /// Each is measured twelve times at least and 1920 times at most. On a simulated device, which
    /// gives the same again and again, each is measured once.
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = duration::parse)]
    time: u64,

    /// Decides in which order combinations are measured: the same number, the same order
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,

    /// Also write all figures as comma-separated values; `-` prints them instead of the table
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Also draw a picture
    #[arg(long, value_name = "FILE", value_parser = file::named)]
    svg: Option<PathBuf>,

    /// Also write a page to open in a browser; it needs no network
    #[arg(long, value_name = "FILE", value_parser = file::named)]
    html: Option<PathBuf>,

    /// Compare with an earlier run, a file that `pinlane --json bench` wrote, and mark what got
    /// slower
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,

    /// With --against: exit status 1 where a copy takes longer by more than this many percent,
    /// beyond the noise of both runs
    #[arg(long, value_name = "PERCENT", requires = "against", value_parser = words::percent)]
    fail_if_slower: Option<f64>,
}

pub(crate) fn run(
    choice: &Choice,
    args: &Args,
    json: bool,
    output: &mut Output,
) -> anyhow::Result<bool> {
    let csv_alone = args
        .csv
        .as_ref()
        .is_some_and(|path| path.as_os_str() == "-");
    if csv_alone && json {
        let reason = "--csv - and --json both want standard output; give --csv a file";
        return Err(UsageError::new(reason.to_owned()).into());
    }
    let csv = args.csv.clone().filter(|_| !csv_alone);
    file::check(
        &[
            ("--csv", &csv),
            ("--svg", &args.svg),
            ("--html", &args.html),
        ],
        choice.file().into_iter().chain(args.against.as_deref()),
    )?;
    let earlier = args.against.as_deref().map(Earlier::read).transpose()?;
    let interrupt = Interrupt::listen()?;
    let report = measure(choice, args, &interrupt)?;
    let written = write_files(args, csv_alone, &report);
    let compared = earlier.map(|earlier| earlier.against(&report));
    output.print(&match (&compared, json) {
        _ if csv_alone => report.to_csv(),
        (None, true) => report.to_json(),
        (Some(compared), true) => compared.to_json(&report),
        (None, false) => report.to_text(),
        (Some(compared), false) => {
            format!("{}{}", report.to_text(), compared.to_text(&report.origin))
        }
    })?;
    // What was measured is shown even where a file could not be written.
    written?;
    output.written([&csv, &args.svg, &args.html], json || csv_alone)?;
    let mut good = report.complete && !report.lines.is_empty();
    if !report.complete {
        output::complain("interrupted: not all was measured");
    } else if report.lines.is_empty() {
        output::complain("nothing was measured; choose other --memory or --routes");
    }
    if let (Some(compared), Some(percent)) = (&compared, args.fail_if_slower)
        && compared.is_slower_by(percent)
    {
        output::complain(&format!(
            "copies take longer than in the earlier run by more than --fail-if-slower {percent}"
        ));
        good = false;
    }
    if let (Some(compared), Some(_)) = (&compared, args.fail_if_slower)
        && compared.changes.is_empty()
    {
        output::complain(
            "--fail-if-slower has nothing to compare; choose --sizes, --memory and --routes that \
             the run of --against has",
        );
        good = false;
    }
    Ok(good)
}

fn write_files(args: &Args, csv_alone: bool, report: &Bench) -> anyhow::Result<()> {
    if let (Some(path), false) = (&args.csv, csv_alone) {
        file::write_text(path, &report.to_csv())?;
    }
    if let Some(path) = &args.svg {
        file::write_text(path, &report.to_svg())?;
    }
    if let Some(path) = &args.html {
        file::write_text(path, &report.to_html())?;
    }
    Ok(())
}

fn measure(choice: &Choice, args: &Args, interrupt: &Interrupt) -> anyhow::Result<Bench> {
    let (target, profile) = device::start_to_measure(choice)?;
    let device = Device::open(target.platform(), target.ordinal())?;
    let info = device.info();
    let simulated = info.simulated.is_some();
    let Sizes(sizes) = match (&args.sizes, simulated) {
        (Some(sizes), _) => sizes.clone(),
        (None, true) => sizes::parse(SIZES_SIMULATED).expect("sizes of our own"),
        (None, false) => sizes::parse(SIZES).expect("sizes of our own"),
    };
    let largest = sizes.last().copied().unwrap_or(1);
    let origin = Origin::new(&info.name, info.simulated.clone());
    // All runs on a simulated device are alike.
    let began = (!simulated).then(date::now);
    let mut report = Bench::new(origin, began, args.seed, 0);
    if interrupt.is_raised() {
        return Ok(report);
    }
    let mut meter = Meter::new(&device, Clock::of(&target), profile, largest).context("--sizes")?;
    let (memory, routes) = (&args.memory.0, &args.routes.0);
    let kinds = sweep::open(&mut meter, memory, routes, interrupt, &mut report.notes)?;
    let points = points::all(&meter, &kinds, routes, &sizes, &mut report.notes);
    if !simulated {
        report.budget_ns = args.time / points.len().max(1) as u64;
    }
    let progress = Progress::new(sweep::steps(points.len(), simulated));
    let mut sweep = Sweep::new(&mut meter, points, interrupt);
    let budget_ns = (!simulated).then_some(report.budget_ns);
    let went = sweep.run(args.seed, budget_ns, &progress);
    drop(progress);
    went?;
    sweep.tell(&mut report)?;
    Ok(report)
}

//! `pinlane compare`

use std::path::PathBuf;

use anyhow::Context;
use pinlane::Device;
use pinlane_model::Profile;
use pinlane_report::{Compare, CompareRow, CopyStats, MemoryKind, Origin, Route};

use crate::device::{self, Choice};
use crate::measure::{Clock, Meter, link};
use crate::output::Output;
use crate::progress::Progress;
use crate::{file, size};

/// The words of `pinlane compare`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Bytes of one copy, such as 64MiB, 1GiB or 1000000
    #[arg(long, default_value = "256MiB", value_name = "BYTES", value_parser = size::parse)]
    size: usize,

    /// Copies that each figure is the median of; a simulated device, whose copies are all alike, does
    /// one
    #[arg(
        long,
        default_value_t = 5,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    repeat: u32,

    /// Also draw a picture
    #[arg(long, value_name = "FILE", value_parser = file::named)]
    svg: Option<PathBuf>,

    /// Also write a page to open in a browser; it needs no network
    #[arg(long, value_name = "FILE", value_parser = file::named)]
    html: Option<PathBuf>,
}

pub(crate) fn run(
    choice: &Choice,
    args: &Args,
    json: bool,
    output: &mut Output,
) -> anyhow::Result<bool> {
    let files = [("--svg", &args.svg), ("--html", &args.html)];
    file::check(&files, choice.file())?;
    let (target, profile) = device::start_to_measure(choice)?;
    let device = Device::open(target.platform(), target.ordinal())?;
    let report = measure(&device, Clock::of(&target), profile, args)?;
    let written = write_files(args, &report);
    output.print(&if json {
        report.to_json()
    } else {
        report.to_text()
    })?;
    // What was measured is shown even where a file could not be written.
    written?;
    output.written([&args.svg, &args.html], json)?;
    Ok(true)
}

fn write_files(args: &Args, report: &Compare) -> anyhow::Result<()> {
    if let Some(path) = &args.svg {
        file::write_text(path, &report.to_svg())?;
    }
    if let Some(path) = &args.html {
        file::write_text(path, &report.to_html())?;
    }
    Ok(())
}

fn measure(
    device: &Device,
    clock: Clock<'_>,
    profile: Option<Profile>,
    args: &Args,
) -> anyhow::Result<Compare> {
    let info = device.info();
    // A simulated device gives the same again and again.
    let repeat = info.simulated.is_none().then_some(args.repeat);
    let link_profile = profile.clone();
    let mut meter = Meter::new(device, clock, profile, args.size).context("--size")?;
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    let progress = Progress::new(MemoryKind::ALL.len());
    for (before, kind) in MemoryKind::ALL.into_iter().enumerate() {
        let name = kind.name();
        if before > 0 {
            progress.step();
        }
        progress.begin(|| name.to_owned());
        if let Some(reason) = meter.refusal(kind) {
            notes.push(format!("{name}: not measured: {reason}"));
            continue;
        }
        let needed = matches!(kind, MemoryKind::Pageable | MemoryKind::Pinned);
        match row(&mut meter, kind, args.size, repeat) {
            Ok(row) => rows.push(row),
            Err(error) if is_refusal(&error) && !needed => {
                meter.close(kind);
                notes.push(format!("{name}: not measured: {error:#}"));
                continue;
            }
            Err(error) if is_refusal(&error) => return Err(error.context("--size")),
            Err(error) => return Err(error),
        }
        if let Some(remark) = meter.remark(kind) {
            notes.push(format!("{name}: {remark}"));
        }
        meter.close(kind);
    }
    drop(progress);
    let origin = Origin::new(&info.name, info.simulated.clone());
    let limit = link::limit(info, link_profile.as_ref());
    let report = Compare::new(origin, args.size as u64, repeat.unwrap_or(1), limit, rows);
    let mut report = report.context("neither pageable nor pinned memory was measured")?;
    report.notes = notes;
    Ok(report)
}

/// Whether the device or the budget refused, so that others can still be measured.
pub(crate) fn is_refusal(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<pinlane::Error>() {
        Some(pinlane::Error::Driver(error)) => !error.is_fatal(),
        other => other.is_some(),
    }
}

fn row(
    meter: &mut Meter<'_>,
    memory: MemoryKind,
    bytes: usize,
    repeat: Option<u32>,
) -> anyhow::Result<CompareRow> {
    let get_ns = meter.open(memory)?;
    let mut figure = |route| {
        let first_ns = meter.check(memory, route, bytes)?;
        let times = match repeat {
            // The first of several is a warm-up.
            None => vec![first_ns],
            Some(repeat) => {
                let times = (0..repeat).map(|_| meter.sample(memory, route, bytes));
                times.collect::<anyhow::Result<Vec<_>>>()?
            }
        };
        CopyStats::from_times(bytes as u64, &times).context(
            "a copy took no time on this device's clock; choose a larger --size or another device",
        )
    };
    Ok(CompareRow {
        memory,
        get_ns,
        h2d: figure(Route::H2d)?,
        d2h: figure(Route::D2h)?,
    })
}

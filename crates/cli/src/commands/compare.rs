//! `pinlane compare`: every kind of memory at one size.

use std::path::PathBuf;

use anyhow::Context;
use pinlane::Device;
use pinlane_report::{Compare, CompareRow, CopyStats, MemoryKind, Route};

use crate::cli::Cli;
use crate::clock::HostClock;
use crate::device::{self, Backend};
use crate::measure::{Meter, is_refusal, link_limit};
use crate::output_file::{self, write_given};
use crate::parse::{number, size};
use crate::terminal::Progress;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Size of each copy, such as 64MiB, 1GiB or 1000000
    #[arg(long, default_value = "256MiB", value_name = "BYTES", value_parser = size::parse)]
    size: usize,

    /// Copies per figure, which is their median; 1 on a simulated device
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = number::up_to(1000))]
    repeat: u32,

    /// Write the chart as an SVG image
    #[arg(long, value_name = "FILE", value_parser = output_file::parse)]
    svg: Option<PathBuf>,

    /// Write the report as a self-contained HTML page
    #[arg(long, value_name = "FILE", value_parser = output_file::parse)]
    html: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, cli: &Cli<'_>) -> anyhow::Result<bool> {
    let files = [("--svg", &args.svg), ("--html", &args.html)];
    output_file::check(&files, cli.device.file())?;
    let backend = cli.device.open_for_timing()?;
    let report = measure(&backend, &backend.device()?, args)?;
    let written = write_given(&args.svg, || report.to_svg())
        .and_then(|()| write_given(&args.html, || report.to_html()));
    cli.report(|| report.to_json(), || report.to_text())?;
    // The results are printed even if a file cannot be written.
    written?;
    cli.written([&args.svg, &args.html])?;
    Ok(true)
}

fn measure(backend: &Backend, device: &Device, args: &Args) -> anyhow::Result<Compare> {
    let info = device.info();
    // All copies of a simulated device take the same time.
    let repeat = info.simulated.is_none().then_some(args.repeat);
    let clock = HostClock::of(backend);
    let mut meter = Meter::new(device, clock, backend.profile(), args.size).context("--size")?;
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    let progress = Progress::steps(MemoryKind::ALL.len());
    for (index, kind) in MemoryKind::ALL.into_iter().enumerate() {
        let name = kind.name();
        if index > 0 {
            progress.advance();
        }
        progress.message(|| name.to_owned());
        if let Some(reason) = meter.refusal(kind) {
            notes.push(format!("{name}: not measured: {reason}"));
            continue;
        }
        let required = matches!(kind, MemoryKind::Pageable | MemoryKind::Pinned);
        match row(&mut meter, kind, args.size, repeat) {
            Ok(row) => rows.push(row),
            Err(error) if is_refusal(&error) && !required => {
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
    let limit = link_limit(info, backend.profile());
    let (bytes, repeat) = (args.size as u64, repeat.unwrap_or(1));
    let report = Compare::new(device::origin(device), bytes, repeat, limit, rows);
    let mut report = report.context("neither pageable nor pinned memory was measured")?;
    report.notes = notes;
    Ok(report)
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
            None => vec![first_ns],
            // The first copy is a warm-up.
            Some(repeat) => {
                let times = (0..repeat).map(|_| meter.sample(memory, route, bytes));
                times.collect::<anyhow::Result<Vec<_>>>()?
            }
        };
        CopyStats::from_times(bytes as u64, &times).context(
            "a copy took no time on this device's clock; use a larger --size or another device",
        )
    };
    Ok(CompareRow {
        memory,
        get_ns,
        h2d: figure(Route::H2d)?,
        d2h: figure(Route::D2h)?,
    })
}

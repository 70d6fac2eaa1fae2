//! `pinlane compare`: every kind of memory at one size.

use std::path::PathBuf;

use anyhow::Context;
use pinlane::{Device, DeviceInfo};
use pinlane_model::Profile;
use pinlane_report::{Compare, CompareRow, CopyStats, LinkBasis, LinkLimit, MemoryKind, Route};

use crate::command_context::CommandContext;
use crate::device::{self, Backend};
use crate::measure::{CopyCase, Meter, is_refusal};
use crate::output_file::{self, write_given};
use crate::parse::{number, size};
use crate::progress::Progress;
use crate::system;
use crate::system::pci::payload_limit_gb_per_s;

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

pub(crate) fn run(args: &Args, context: &CommandContext<'_>) -> anyhow::Result<bool> {
    let files = [("--svg", &args.svg), ("--html", &args.html)];
    output_file::check(&files, context.device.file())?;
    let backend = context.device.open_for_timing()?;
    let report = measure(&backend, &backend.device()?, args)?;
    let written = write_given(&args.svg, || report.to_svg())
        .and_then(|()| write_given(&args.html, || report.to_html(&context.environment())));
    context.report(
        |environment| report.to_json(environment),
        || report.to_text(),
    )?;
    // The results are printed even if a file cannot be written.
    written?;
    context.written([&args.svg, &args.html])?;
    Ok(true)
}

fn measure(backend: &Backend, device: &Device, args: &Args) -> anyhow::Result<Compare> {
    let info = device.info();
    // All copies of a simulated device take the same time.
    let repeat = info.simulated.is_none().then_some(args.repeat);
    let mut meter = Meter::new(backend, device, args.size).context("--size")?;
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    let progress = Progress::steps(MemoryKind::ALL.len());
    for (index, kind) in MemoryKind::ALL.into_iter().enumerate() {
        if index > 0 {
            progress.advance();
        }
        progress.message(|| kind.name().to_owned());
        let required = matches!(kind, MemoryKind::Pageable | MemoryKind::Pinned);
        let row = |meter: &mut Meter<'_>| row(meter, kind, args.size, repeat);
        let measured = meter.try_kind(kind, required, &mut notes, row);
        rows.extend(measured.map_err(|error| match is_refusal(&error) {
            true => error.context("--size"),
            false => error,
        })?);
        meter.close(kind);
    }
    drop(progress);
    let limit = link_limit(info, backend.profile.as_ref());
    let (bytes, repeat) = (args.size as u64, repeat.unwrap_or(1));
    let report = Compare::new(device::origin(device.info()), bytes, repeat, limit, rows);
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
        let case = CopyCase {
            memory,
            route,
            bytes,
        };
        let first_ns = meter.check(case)?;
        let times = match repeat {
            None => vec![first_ns],
            // The first copy is a warm-up.
            Some(repeat) => {
                let times = (0..repeat).map(|_| meter.sample(case));
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

/// The limit of the link at its current speed, or that of a simulated device by its profile. `None` if
/// unknown. An idle GPU slows its link down: call this right after copies.
fn link_limit(info: &DeviceInfo, profile: Option<&Profile>) -> Option<LinkLimit> {
    let (gb_per_s, basis) = if let Some(profile) = profile {
        // Large copies of pinned memory run at the link's rate.
        let rates = [&profile.h2d, &profile.d2h].map(|costs| costs.pinned.bytes_per_s);
        let bytes_per_s = rates.into_iter().max().filter(|rate| *rate > 0)?;
        (bytes_per_s as f64 / 1e9, LinkBasis::Profile)
    } else {
        let link = system::link(info.pci.filter(|_| info.simulated.is_none())?)?;
        let (generation, width) = (link.generation, link.width);
        let limit = payload_limit_gb_per_s(generation, width)?;
        (limit, LinkBasis::Pcie { generation, width })
    };
    Some(LinkLimit { gb_per_s, basis })
}

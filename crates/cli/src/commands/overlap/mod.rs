//! `pinlane overlap`: one job in five ways, each with its timeline.

mod job;
mod variants;

use pinlane_report::timeline::{Chart, Exporter};
use pinlane_report::{Overlap, duration as report_duration, short_size};

use crate::clock::HostClock;
use crate::command_context::CommandContext;
use crate::input_error::UsageError;
use crate::output_file::ChartFiles;
use crate::parse::{duration, number, size};
use crate::{calibrated_profiles, device, terminal};
use job::OverlapJob;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Bytes copied to the device and back, such as 256MiB; a multiple of 4
    #[arg(long, default_value = "256MiB", value_name = "BYTES", value_parser = parse_size)]
    size: usize,

    /// Time of the kernel alone, such as 4ms; `light` for a single pass over the data; `copy` for the
    /// time of the copy to the device
    #[arg(long, default_value = "copy", value_name = "TIME", value_parser = parse_length)]
    kernel: Length,

    /// Time of the CPU's work, such as 2ms; `copy` as for --kernel; 0s for none
    #[arg(long, default_value = "copy", value_name = "TIME", value_parser = parse_length)]
    host: Length,

    /// Streams of the breadth-first and depth-first variants
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = number::up_to(128))]
    streams: u32,

    /// Runs of each variant; the median run is shown
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = number::up_to(100))]
    repeat: u32,

    #[command(flatten)]
    files: ChartFiles,
}

/// Parses a size that whole elements of the kernel fill.
fn parse_size(text: &str) -> Result<usize, String> {
    match size::parse(text)? {
        bytes if bytes.is_multiple_of(4) => Ok(bytes),
        _ => Err("must be a multiple of 4".to_owned()),
    }
}

#[derive(Clone, Copy)]
enum Length {
    Light,
    Copy,
    Ns(u64),
}

fn parse_length(text: &str) -> Result<Length, String> {
    match text {
        "light" => Ok(Length::Light),
        "copy" => Ok(Length::Copy),
        other => duration(other).map(Length::Ns),
    }
}

pub(crate) fn run(args: &Args, context: &CommandContext<'_>) -> anyhow::Result<bool> {
    if let Length::Light = args.host {
        let reason = "--host cannot be `light`; use a time such as 2ms, copy or 0s";
        return Err(UsageError(reason.to_owned()).into());
    }
    args.files.check(context.device.file())?;
    let backend = context.device.open_for_timing()?;
    let device = backend.device()?;
    let profile = match &backend.profile {
        Some(profile) => profile.clone(),
        None => calibrated_profiles::cached_or_measured(&backend, &device)?,
    };
    let mut job = OverlapJob::new(&device, HostClock::of(&backend), args.size)?;
    let copy_ns = job.upload_ns()?;
    let ns = |length| match length {
        Length::Light => 0,
        Length::Copy => copy_ns,
        Length::Ns(ns) => ns,
    };
    let times = job.kernel_times()?;
    if let Length::Ns(ns) = args.kernel
        && !times.contains(ns)
    {
        let bytes = short_size(args.size as u64);
        let [shortest, longest] = [times.shortest_ns, times.longest_ns].map(report_duration);
        let reason = format!(
            "--kernel: a kernel over {bytes} takes {shortest} to {longest}; use a time in this range, or \
             another --size"
        );
        return Err(UsageError(reason).into());
    }
    job.set_kernel(&times, ns(args.kernel))?;
    job.host_ns = ns(args.host);
    // All runs of a simulated device take the same time.
    let simulated = device.info().simulated.is_some();
    let repeat = if simulated { 1 } else { args.repeat };
    let measured = variants::run_all(&mut job, args.streams, &profile, repeat)?;
    let report = Overlap::new(
        device::origin(device.info()),
        job.bytes() as u64,
        job.kernel_ns,
        job.host_ns,
        args.streams,
        measured.timelines,
    );
    let report = report.predicted((job.host_ns == 0).then_some(measured.predicted_ns));
    args.files.write(&report.chart, || context.environment())?;
    context.report(
        |environment| report.to_json(environment),
        || text(&report.chart),
    )?;
    context.written(args.files.all())?;
    Ok(true)
}

fn text(chart: &Chart) -> String {
    let mut bytes = Vec::new();
    let look = terminal::chart_look();
    look.export(chart, &mut bytes)
        .expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("text is UTF-8")
}

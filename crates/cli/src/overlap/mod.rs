//! `pinlane overlap`: one job run five ways, each with its chronogram.

mod lesson;
mod marks;
mod variants;
mod words;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use pinlane::Device;
use pinlane::calibrate::calibrate;
use pinlane_model::Profile;
use pinlane_report::timeline::{Chart, Html, Svg, Timeline, Trace};
use pinlane_report::{Origin, Overlap};

use crate::device::{self, Choice, Target};
use crate::output::{Output, UsageError};
use crate::{chart, size};
use lesson::{Clock, Lesson};

/// The words of `pinlane overlap`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Bytes that go to the device and back, such as 256MiB
    #[arg(long, default_value = "256MiB", value_name = "BYTES", value_parser = size::parse)]
    size: usize,

    /// Time of the kernel alone, such as 4ms; `light` for one pass over the data; `copy` for as long
    /// as the copy to the device takes
    #[arg(long, default_value = "copy", value_name = "TIME", value_parser = length)]
    kernel: Length,

    /// Time of the work that the CPU has to do beside it, such as 2ms; `copy` as for --kernel; 0s for
    /// none
    #[arg(long, default_value = "copy", value_name = "TIME", value_parser = length)]
    host: Length,

    /// Streams of the third and fourth way
    #[arg(
        long,
        default_value_t = 4,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=128)
    )]
    streams: u32,

    /// Runs of each way, of which the median one is shown
    #[arg(
        long,
        default_value_t = 5,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=100)
    )]
    repeat: u32,

    /// Also write the chart as a picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Also write the chart as a page to zoom and point at
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Also write the chart for Perfetto (ui.perfetto.dev)
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// How long something takes.
#[derive(Clone, Copy)]
enum Length {
    Light,
    Copy,
    Ns(u64),
}

fn length(text: &str) -> Result<Length, String> {
    match text {
        "light" => Ok(Length::Light),
        "copy" => Ok(Length::Copy),
        other => words::duration(other).map(Length::Ns),
    }
}

pub(crate) fn run(
    choice: &Choice,
    args: &Args,
    json: bool,
    output: &mut Output,
) -> anyhow::Result<bool> {
    let host = match args.host {
        Length::Light => {
            let reason = "--host light means nothing; write a time such as 2ms, copy or 0s";
            return Err(UsageError::new(reason.to_owned()).into());
        }
        other => other,
    };
    let target = device::open(choice, |sim| sim.checks(false).record_timeline(false), None)?;
    let device = Device::open(target.platform(), target.ordinal())?;
    let clock = match &target {
        Target::Cuda { .. } => Clock::Real,
        Target::Sim(sim) => Clock::Simulated(sim),
    };
    let info = device.info();
    let profile = profile_of(&target, choice, &device)?;
    let mut lesson = Lesson::new(&device, clock, args.size)?;
    let copy_ns = lesson.upload_ns()?;
    lesson.set_kernel(match args.kernel {
        Length::Light => 0,
        Length::Copy => copy_ns,
        Length::Ns(ns) => ns,
    })?;
    lesson.host_ns = match host {
        Length::Ns(ns) => ns,
        _ => copy_ns,
    };
    // A simulated device gives the same again and again.
    let repeat = if info.simulated.is_some() {
        1
    } else {
        args.repeat
    };
    let timelines = variants::all(&mut lesson, args.streams, &profile, repeat)?;
    let report = report(
        &lesson,
        args.streams,
        Origin::new(&info.name, info.simulated.clone()),
        timelines,
    );
    write_files(args, &report.chart)?;
    output.print(&if json {
        report.to_json()
    } else {
        chart::text(&report.chart)
    })?;
    Ok(true)
}

/// What the planner knows about the device.
fn profile_of(target: &Target, choice: &Choice, device: &Device) -> anyhow::Result<Profile> {
    match (target, choice) {
        (Target::Sim(_), Choice::Sim(profile)) => Ok(profile.as_ref().clone()),
        (Target::Sim(_), _) => Ok(device::fallback_profile()),
        (Target::Cuda { .. }, _) => {
            let began = Instant::now();
            Ok(calibrate(device, &|| began.elapsed().as_nanos() as u64)?)
        }
    }
}

fn report(lesson: &Lesson<'_>, streams: u32, origin: Origin, timelines: Vec<Timeline>) -> Overlap {
    let title = format!(
        "{} to the device, a kernel of {}, and back, with {} of work for the CPU: five ways",
        words::show_size(lesson.bytes()),
        words::show_duration(lesson.kernel_ns),
        words::show_duration(lesson.host_ns),
    );
    Overlap::new(
        lesson.bytes() as u64,
        lesson.kernel_ns,
        lesson.host_ns,
        streams,
        Chart::new(title, origin, timelines),
    )
}

fn write_files(args: &Args, chart: &Chart) -> anyhow::Result<()> {
    chart::write(args.svg.as_deref(), &Svg, chart).context("--svg")?;
    chart::write(args.html.as_deref(), &Html, chart).context("--html")?;
    chart::write(args.trace.as_deref(), &Trace, chart).context("--trace")
}

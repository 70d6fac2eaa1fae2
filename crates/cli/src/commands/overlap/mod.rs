//! `pinlane overlap`: one job run five ways, each with its chronogram.

mod lesson;
mod marks;
mod variants;

use std::path::PathBuf;

use pinlane::Device;
use pinlane_report::timeline::{Chart, Exporter, Html, Svg, Timeline, Trace};
use pinlane_report::{Origin, Overlap};

use crate::calibrate;
use crate::device::{self, Choice, Target};
use crate::output::{Output, UsageError};
use crate::{duration, file, size, terminal};
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
        other => duration::parse(other).map(Length::Ns),
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
    file::check(
        &[
            ("--svg", &args.svg),
            ("--html", &args.html),
            ("--trace", &args.trace),
        ],
        choice.file(),
    )?;
    let (target, simulated) = device::start_to_measure(choice)?;
    let device = Device::open(target.platform(), target.ordinal())?;
    let clock = match &target {
        Target::Cuda { .. } => Clock::Real,
        Target::Sim(sim) => Clock::Simulated(sim),
    };
    let info = device.info();
    let profile = match simulated {
        Some(profile) => profile,
        None => calibrate::kept_or_new(&target, &device)?,
    };
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
        text(&report.chart)
    })?;
    output.written([&args.svg, &args.html, &args.trace], json)?;
    Ok(true)
}

fn report(lesson: &Lesson<'_>, streams: u32, origin: Origin, timelines: Vec<Timeline>) -> Overlap {
    let bytes = lesson.bytes() as u64;
    Overlap::new(
        origin,
        bytes,
        lesson.kernel_ns,
        lesson.host_ns,
        streams,
        timelines,
    )
}

fn write_files(args: &Args, chart: &Chart) -> anyhow::Result<()> {
    let wanted: [(&Option<PathBuf>, &dyn Exporter); 3] = [
        (&args.svg, &Svg),
        (&args.html, &Html),
        (&args.trace, &Trace),
    ];
    for (path, exporter) in wanted {
        if let Some(path) = path {
            file::write(path, |out| exporter.export(chart, out))?;
        }
    }
    Ok(())
}

fn text(chart: &Chart) -> String {
    let mut bytes = Vec::new();
    let look = terminal::chart_look();
    look.export(chart, &mut bytes)
        .expect("memory takes everything");
    String::from_utf8(bytes).expect("text is UTF-8")
}

//! `pinlane calibrate`: measures the profile of a device.

use std::path::{Path, PathBuf};

use anyhow::Context;
use pinlane_driver::DeviceInfo;
use pinlane_model::{Direction, HostKind, Profile};
use pinlane_report::{
    BothRates, Calibration, CalibrationFigures, ExpressFigures, FileFigures, PinningFigures,
};

use crate::command_context::CommandContext;
use crate::{calibrated_profiles, clock, device, output_file};

const GIB: u64 = 1 << 30;

/// The size of the copies whose rates are reported, if the curve has no measured points.
const COPY_BYTES: u64 = 32 << 20;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Also write the profile to this file
    ///
    /// The profile of a GPU is always written to $XDG_CACHE_HOME/pinlane/profiles (or ~/.cache/…), where
    /// `pinlane plan` finds it. The profile of a simulated device is not.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, context: &CommandContext<'_>) -> anyhow::Result<bool> {
    output_file::check(&[("--output", &args.output)], context.device.file())?;
    let backend = context.device.open_for_timing()?;
    let device = backend.device()?;
    let info = device.info();
    // Found before measuring, so that a missing cache folder fails at once.
    let cached = match (calibrated_profiles::cache_path(info), &args.output) {
        _ if info.simulated.is_some() => None,
        (Ok(path), _) => Some(path),
        (Err(_), Some(_)) => None,
        (Err(error), None) => return Err(error.context("use --output FILE")),
    };
    let (profile, elapsed_ns) = calibrated_profiles::measure(&backend, &device)?;
    let origin = device::origin(device.info());
    let date = clock::utc_now();
    let text = calibrated_profiles::file_text(&profile, info, &origin, &date);
    let as_data = serde_json::to_value(&profile).context("cannot convert the profile to JSON")?;
    let mut report = Calibration::new(origin, date, elapsed_ns, figures(&profile), as_data);
    let mut failed = None;
    let mut note = |path: &Path, written: anyhow::Result<()>| match written {
        Ok(()) => report.written.push(path.display().to_string()),
        Err(error) => failed = failed.take().or(Some(error)),
    };
    if let Some(path) = &cached {
        note(path, calibrated_profiles::write_cached(path, &text));
    }
    if let Some(path) = &args.output {
        note(path, output_file::write_text(path, &text));
    }
    report.write_failed = failed.is_some();
    let output_file = args.output.as_deref().filter(|_| failed.is_none());
    report.next = next(info, output_file);
    // The results are printed even if a file cannot be written.
    context.report(
        |environment| report.to_json(environment),
        || report.to_text(),
    )?;
    failed.map_or(Ok(true), Err)
}

fn figures(profile: &Profile) -> CalibrationFigures {
    let knots = &profile.h2d.pinned.knots;
    let copy_bytes = knots.last().map_or(COPY_BYTES, |knot| knot[0]);
    let rate = |direction, kind| {
        let ns = profile.copy_ns(direction, kind, copy_bytes);
        // Bytes per nanosecond are GB/s.
        (ns > 0).then(|| copy_bytes as f64 / ns as f64)
    };
    let rates = |kind| BothRates {
        h2d_gb_per_s: rate(Direction::HostToDevice, kind),
        d2h_gb_per_s: rate(Direction::DeviceToHost, kind),
    };
    let pinned = rates(HostKind::Pinned);
    let alone = pinned.h2d_gb_per_s.zip(pinned.d2h_gb_per_s);
    let gb_per_s = |bytes_per_s: u64| (bytes_per_s > 0).then(|| bytes_per_s as f64 / 1e9);
    CalibrationFigures {
        copy_bytes,
        pinned,
        pageable: rates(HostKind::Pageable),
        both_ways_percent: profile.both_ways_percent,
        both_ways_gb_per_s: alone.map(|(up, down)| {
            // A single engine alternates between the directions.
            let shared = profile.device.d2h_engines == 0;
            let sharing = if shared { 2.0 } else { 1.0 };
            (up + down) / sharing * 100.0 / profile.both_ways_percent.max(1) as f64
        }),
        express: profile.express.as_ref().map(|express| ExpressFigures {
            lanes: express.lanes,
            rates: BothRates {
                h2d_gb_per_s: gb_per_s(express.up.bytes_per_s),
                d2h_gb_per_s: gb_per_s(express.down.bytes_per_s),
            },
            both_percent: express.both_percent(1 << 30),
        }),
        files: profile.files.map(|files| FileFigures {
            threads: files.threads,
            gb_per_s: files.bytes_per_s as f64 / 1e9,
        }),
        launch_ns: profile.kernel.launch_ns,
        handover_ns: profile.device.handover_ns,
        switch_ns: profile.device.switch_ns,
        submit_ns: profile.calls.submit_ns,
        wake_ns: profile.calls.wake_ns,
        kernel_gb_per_s: gb_per_s(profile.kernel.bytes_per_s),
        pinning: PinningFigures {
            alloc_ns_per_gib: profile.host_memory.alloc.ns(GIB),
            register_ns_per_gib: profile.host_memory.register.ns(GIB),
        },
    }
}

fn next(info: &DeviceInfo, output: Option<&Path>) -> String {
    match (&info.simulated, output) {
        (None, _) if info.ordinal == 0 => "pinlane plan".to_owned(),
        (None, _) => format!("pinlane --device cuda:{} plan", info.ordinal),
        (Some(_), Some(file)) => {
            let file = quoted(&file.display().to_string());
            format!("pinlane plan --profile {file}")
        }
        (Some(name), None) => {
            // The name of a profile is not its file name.
            let name = Profile::builtin(name).map_or("FILE", |_| name.as_str());
            format!("pinlane --device sim:{name} plan")
        }
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@%,=".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        assert_eq!(quoted("my/link-2.toml"), "my/link-2.toml");
        assert_eq!(quoted("my link"), "'my link'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}

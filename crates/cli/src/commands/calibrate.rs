//! `pinlane calibrate`

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use pinlane::Device;
use pinlane_driver::DeviceInfo;
use pinlane_model::{Direction, HostKind, Profile};
use pinlane_report::{
    BothRates, Calibration, CalibrationFigures, ExpressFigures, FileFigures, Origin, PinningFigures,
};

use crate::device::{self, Choice, Target};
use crate::output::{self, Output};
use crate::{date, file, profile_cache};

const GIB: u64 = 1 << 30;

/// The size of copies that rates are told of, for a curve without measured points.
const COPY_BYTES: u64 = 32 << 20;

/// A job to plan next.
const NEXT_JOB: &str = "--in 1GiB --out 1GiB --kernel 4ms";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write the profile to this file as well
    ///
    /// The profile of a GPU is kept in $XDG_CACHE_HOME/pinlane/profiles (or ~/.cache/…) in any case,
    /// where `pinlane plan` finds it. That of a simulated device is not.
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

pub(crate) fn run(
    choice: &Choice,
    args: &Args,
    json: bool,
    output: &mut Output,
) -> anyhow::Result<bool> {
    file::check(&[("--output", &args.output)], choice.file())?;
    let target = device::open(choice, |sim| sim.checks(false).record_timeline(false), None)?;
    let device = Device::open(target.platform(), target.ordinal())?;
    let info = device.info();
    // Where it goes is known before anything is measured.
    let cached = match info.simulated {
        Some(_) => None,
        None => match (profile_cache::path(info), &args.output) {
            (Ok(path), _) => Some(path),
            (Err(_), Some(_)) => None,
            (Err(error), None) => return Err(error.context("use --output FILE")),
        },
    };
    let (profile, took_ns) = measure(&target, &device)?;
    let origin = Origin::new(&info.name, info.simulated.clone());
    let at = date::now();
    let text = file_text(&profile, info, &origin, &at);
    let as_data = serde_json::to_value(&profile).context("the profile as JSON")?;
    let mut report = Calibration::new(origin, at, took_ns, figures(&profile), as_data);
    let mut failed = None;
    let mut note = |path: &Path, written: anyhow::Result<()>| match written {
        Ok(()) => report.written.push(path.display().to_string()),
        Err(error) => failed = failed.take().or(Some(error)),
    };
    if let Some(path) = &cached {
        note(path, profile_cache::write(path, &text));
    }
    if let Some(path) = &args.output {
        note(
            path,
            file::write(path, |out| out.write_all(text.as_bytes())),
        );
    }
    report.write_failed = failed.is_some();
    let output_file = args.output.as_deref().filter(|_| failed.is_none());
    report.next = next(info, output_file);
    // What was measured is told even where it cannot be kept.
    output.print(&if json {
        report.to_json()
    } else {
        report.to_text()
    })?;
    match failed {
        Some(error) => Err(error),
        None => Ok(true),
    }
}

/// The profile of a GPU: the one that is kept, or one that is measured and kept now.
pub(crate) fn kept_or_new(target: &Target, device: &Device) -> anyhow::Result<Profile> {
    let info = device.info();
    let path = profile_cache::path(info).ok();
    if path.as_deref().is_some_and(Path::exists) {
        return Ok(profile_cache::read(info)?.profile);
    }
    let (profile, _) = measure(target, device)?;
    let origin = Origin::new(&info.name, None);
    if let Some(path) = path {
        let text = file_text(&profile, info, &origin, &date::now());
        if let Err(error) = profile_cache::write(&path, &text) {
            output::complain(&format!("the calibration is not kept: {error:#}"));
        }
    }
    Ok(profile)
}

/// The profile, and how long it took by the clock of the machine.
fn measure(target: &Target, device: &Device) -> anyhow::Result<(Profile, u64)> {
    let began = Instant::now();
    let real_ns = || u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let (profile, took_ns) = match target.sim() {
        Some(sim) => {
            let start_ns = sim.now_ns();
            let profile = pinlane::calibrate::calibrate(device, &|| sim.now_ns())?;
            (profile, sim.now_ns() - start_ns)
        }
        None => {
            if let Some(profile) = &device.info().simulated {
                bail!(
                    "the GPU behind this libcuda is a simulated one, whose clock cannot be read \
                     from here; use --device sim:{profile}"
                );
            }
            if io::stderr().is_terminal() {
                let name = &device.info().name;
                output::complain(&format!("measuring {name}, which takes some seconds"));
            }
            let profile = pinlane::calibrate::calibrate(device, &real_ns)?;
            (profile, real_ns())
        }
    };
    Ok((profile, took_ns))
}

/// The profile's file: who wrote it when on what, then the profile.
fn file_text(profile: &Profile, info: &DeviceInfo, origin: &Origin, at: &str) -> String {
    let place = info
        .pci
        .map_or_else(String::new, |pci| format!(" at {pci}"));
    let head = [
        format!(
            "Written by `pinlane calibrate`, version {}, on {at}.",
            env!("CARGO_PKG_VERSION")
        ),
        format!("{}{place}, CUDA {}.", info.name, info.driver_version),
        format!("{}.", origin.line()),
    ];
    // A name from outside must not end its line.
    let line = |text: &String| {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        format!("# {text}\n")
    };
    let head: String = head.iter().map(line).collect();
    format!("{head}{}", profile.to_toml())
}

fn figures(profile: &Profile) -> CalibrationFigures {
    let knots = &profile.h2d.pinned.knots;
    let copy_bytes = knots.last().map_or(COPY_BYTES, |knot| knot[0]);
    let rate = |direction, kind| {
        let ns = profile.copy_ns(direction, kind, copy_bytes);
        // Bytes a nanosecond are GB/s.
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
            // With one engine for both, they take turns.
            let turns = if profile.device.d2h_engines == 0 {
                2.0
            } else {
                1.0
            };
            (up + down) / turns * 100.0 / profile.both_ways_percent.max(1) as f64
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

/// A command to go on with.
fn next(info: &DeviceInfo, output: Option<&Path>) -> String {
    match (&info.simulated, output) {
        (None, _) if info.ordinal == 0 => format!("pinlane plan {NEXT_JOB}"),
        (None, _) => format!("pinlane --device cuda:{} plan {NEXT_JOB}", info.ordinal),
        (Some(_), Some(file)) => {
            let file = quoted(&file.display().to_string());
            format!("pinlane plan --profile {file} {NEXT_JOB}")
        }
        (Some(name), None) => {
            // The name of a profile from a file is not the file's.
            let name = Profile::builtin(name).map_or("FILE", |_| name.as_str());
            format!("pinlane --device sim:{name} plan {NEXT_JOB}")
        }
    }
}

/// The word as a shell reads it.
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
    fn names_from_outside_stay_in_their_comment() {
        let profile = Profile::builtin("h200").expect("built in");
        let info = DeviceInfo::new(0, "GPU\nname = \"broken\"\r\u{7f}");
        let origin = Origin::new(&info.name, None);
        let text = file_text(&profile, &info, &origin, "2026-11-15 09:36:59 UTC");
        assert!(text.lines().take(3).all(|line| line.starts_with("# ")));
        assert_eq!(Profile::from_toml(&text), Ok(profile));
    }

    #[test]
    fn words_for_a_shell() {
        assert_eq!(quoted("my/link-2.toml"), "my/link-2.toml");
        assert_eq!(quoted("my link"), "'my link'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}

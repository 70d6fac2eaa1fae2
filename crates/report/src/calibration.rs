//! `calibrate`: the main figures of a machine, and its profile.

use serde::Serialize;
use serde_json::Value;

use crate::Origin;
use crate::format::{counted, duration, exact_size};
use crate::text_layout::{sanitize, table_row};

/// Rates of one kind of memory, 1e9 bytes a second; `None` if copies take no time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct BothRates {
    /// Host to device.
    pub h2d_gb_per_s: Option<f64>,
    /// Device to host.
    pub d2h_gb_per_s: Option<f64>,
}

/// The express lane.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ExpressFigures {
    /// Threads.
    pub lanes: u32,
    /// Rates, one direction at a time.
    pub rates: BothRates,
    /// Time of a copy while both directions are busy, in percent of its time alone.
    pub both_percent: u64,
}

/// Cached files, read and copied to the device.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct FileFigures {
    /// Reading threads.
    pub threads: u32,
    /// 1e9 bytes of files a second.
    pub gb_per_s: f64,
}

/// Cost of page-locking.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PinningFigures {
    /// Allocating 1 GiB of pinned memory.
    pub alloc_ns_per_gib: u64,
    /// Page-locking 1 GiB in place.
    pub register_ns_per_gib: u64,
}

/// The main figures of a calibration.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CalibrationFigures {
    /// Size of the copies: the largest that was measured.
    pub copy_bytes: u64,
    /// Page-locked memory.
    pub pinned: BothRates,
    /// Ordinary memory, copied by the driver.
    pub pageable: BothRates,
    /// Time of a pinned copy while both directions are busy, in percent of its time alone.
    pub both_ways_percent: u64,
    /// Rate of both directions together, pinned, while both are busy.
    pub both_ways_gb_per_s: Option<f64>,
    /// Ordinary memory, copied by the express lane; `None` if not measured.
    pub express: Option<ExpressFigures>,
    /// Files in the page cache; `None` if not measured.
    pub files: Option<FileFigures>,
    /// Launch of an empty kernel.
    pub launch_ns: u64,
    /// Hand-over between engines.
    pub handover_ns: u64,
    /// Switching a copy engine to another stream.
    pub switch_ns: u64,
    /// Host time to submit a copy or kernel.
    pub submit_ns: u64,
    /// Time to wake a waiting thread.
    pub wake_ns: u64,
    /// Memory rate of kernels; `None` if they take no time.
    pub kernel_gb_per_s: Option<f64>,
    /// Cost of page-locking.
    pub pinning: PinningFigures,
}

/// A calibration.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Calibration {
    /// The device.
    #[serde(flatten)]
    pub origin: Origin,
    /// Date and time, UTC.
    pub at: String,
    /// Duration, by the clock of the device's machine.
    pub took_ns: u64,
    /// Main figures.
    pub figures: CalibrationFigures,
    /// The profile as data, with the field names of its file.
    pub calibrated_profile: Value,
    /// Files that the profile was written to.
    pub written: Vec<String>,
    /// Whether writing a file failed.
    pub write_failed: bool,
    /// A command to try next.
    pub next: String,
}

impl Calibration {
    /// A calibration that is not written to a file yet.
    #[must_use]
    pub fn new(
        origin: Origin,
        at: impl Into<String>,
        took_ns: u64,
        figures: CalibrationFigures,
        calibrated_profile: Value,
    ) -> Self {
        Self {
            origin,
            at: at.into(),
            took_ns,
            figures,
            calibrated_profile,
            written: Vec::new(),
            write_failed: false,
            next: String::new(),
        }
    }

    /// The origin, a table of the main figures, the files of the profile, and the next command.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!(
            "Calibration\n{}\n\n{}\n{}\n{}",
            sanitize(&self.origin.line()),
            self.copies(),
            self.figures.costs(),
            self.ending()
        )
    }

    fn copies(&self) -> String {
        let simulated = matches!(self.origin, Origin::Simulated { .. });
        let note = match simulated && self.figures.express.is_some() {
            true => "Express: by the profile of the simulated device, not measured.\n",
            false => "",
        };
        self.figures.copies() + note
    }

    fn ending(&self) -> String {
        let took = duration(self.took_ns);
        let simulated = matches!(self.origin, Origin::Simulated { .. });
        let clock = if simulated { " of simulated time" } else { "" };
        let mut text = format!("Took       {took}{clock}\n");
        text.extend(
            self.written
                .iter()
                .map(|file| format!("Written to {file}\n")),
        );
        if self.written.is_empty() {
            text.push_str(match simulated && !self.write_failed {
                true => "Written to no file: profiles of simulated devices are not stored; use --output FILE\n",
                false => "Written to no file\n",
            });
        }
        if !self.next.is_empty() {
            text.push_str(&format!("Next       {}\n", self.next));
        }
        text
    }
}

impl CalibrationFigures {
    fn copies(&self) -> String {
        let row = |name: &str, first: &str, second: &str| {
            table_row(&[22, 16, 16], &[name, first, second])
        };
        let rates = |name: &str, rates: BothRates| {
            row(name, &rate(rates.h2d_gb_per_s), &rate(rates.d2h_gb_per_s))
        };
        let mut text = row("copies", "host to device", "device to host");
        text.push_str(&rates("pinned", self.pinned));
        text.push_str(&rates("pageable", self.pageable));
        text.push_str(&match &self.express {
            Some(express) => {
                let lanes = counted(express.lanes.into(), "lane");
                rates(&format!("express, {lanes}"), express.rates)
            }
            None => row("express", "not measured", "not measured"),
        });
        if let Some(files) = &self.files {
            let threads = counted(files.threads.into(), "thread");
            let name = format!("files, {threads}");
            text.push_str(&row(&name, &rate(Some(files.gb_per_s)), "-"));
        }
        if let Some(together) = self.both_ways_gb_per_s {
            text.push_str(&format!(
                "Pinned, both ways at once: {together:.1} GB/s; a copy takes {}% of its time alone.\n",
                self.both_ways_percent
            ));
        }
        let bytes = exact_size(self.copy_bytes);
        text.push_str(&format!("{bytes} per copy; GB is 10^9 bytes.\n"));
        text
    }

    fn costs(&self) -> String {
        let pin = &self.pinning;
        let costs = [
            ("kernel launch", self.launch_ns),
            ("hand-over between engines", self.handover_ns),
            ("switching an engine to another stream", self.switch_ns),
            ("submitting a copy or kernel", self.submit_ns),
            ("waking a waiting thread", self.wake_ns),
            (
                "allocating 1 GiB pinned by the driver",
                pin.alloc_ns_per_gib,
            ),
            ("pinning 1 GiB in place", pin.register_ns_per_gib),
        ];
        let costs = costs.map(|(name, ns)| (name, duration(ns)));
        let kernels = ("kernels in device memory", rate(self.kernel_gb_per_s));
        let rows = costs.into_iter().chain([kernels]);
        rows.map(|(name, value)| table_row(&[40, 14], &[name, &value]))
            .collect()
    }
}

fn rate(gb_per_s: Option<f64>) -> String {
    let rate = gb_per_s.map(|rate| format!("{rate:.1} GB/s"));
    rate.unwrap_or_else(|| "takes no time".to_owned())
}

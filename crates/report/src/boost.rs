//! `boost`: what an unmodified program gained from the express lane.

use serde::Serialize;

use crate::format::{byte_rate, counted, duration, rounded_size};
use crate::text_layout::{sanitize, table_row};
use crate::{Origin, Route};

/// The copies of a program.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Boost {
    /// The device.
    #[serde(flatten)]
    pub origin: Origin,
    /// The program and its arguments.
    pub command: String,
    /// Copies between host and device that were seen.
    pub copies: u64,
    /// Other copies, which are only counted: of rows and blocks, and inside of devices.
    pub other_copies: u64,
    /// Copies over the express lane, by direction.
    pub boosted: Vec<BoostRow>,
    /// Copies by the driver, by reason.
    pub left_to_driver: Vec<BoostReason>,
    /// Pinned allocations that Pinlane served.
    pub pinned_allocations: u64,
    /// Their bytes.
    pub pinned_bytes: u64,
    /// The profile that times were computed with, if there is one.
    pub profile: Option<String>,
}

/// Copies of one direction over the express lane.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BoostRow {
    /// The direction.
    pub route: Route,
    /// Number of copies.
    pub copies: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The time that the program waited for them; computed on a simulated device, if its profile has rates.
    pub express_ns: Option<u64>,
    /// The time that the driver would have taken, computed, if there is a profile.
    pub driver_ns: Option<u64>,
}

/// Copies that the driver made, and why.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BoostReason {
    /// The reason, in words.
    pub reason: &'static str,
    /// Number of copies.
    pub copies: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Boost {
    /// The copies, the origin, a table of what went over the express lane, and what did not.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "=== Boost ===\n{}: {} between host and device\n{}\n\n",
            sanitize(&self.command),
            counted(self.copies, "copy"),
            sanitize(&self.origin.line())
        );
        text.push_str(&self.table());
        if let Some(saved) = self.saved() {
            text.push_str(&saved);
        }
        if !self.left_to_driver.is_empty() {
            let reasons = self.left_to_driver.iter();
            let reasons: Vec<_> = reasons
                .map(|it| format!("{} {} ({})", it.copies, it.reason, rounded_size(it.bytes)))
                .collect();
            text.push_str(&format!("Left to the driver: {}.\n", reasons.join(", ")));
        }
        if self.other_copies > 0 {
            let others = self.other_copies;
            text.push_str(&format!("Other copies, not changed: {others}.\n"));
        }
        if self.pinned_allocations > 0 {
            text.push_str(&format!(
                "Pinned memory: {}, {}.\n",
                counted(self.pinned_allocations, "allocation"),
                rounded_size(self.pinned_bytes)
            ));
        }
        text
    }

    fn table(&self) -> String {
        const WIDTHS: [usize; 6] = [16, 8, 12, 12, 12, 12];
        if self.boosted.is_empty() {
            return "No copy went over the express lane.\n".to_owned();
        }
        let express = match self.origin.is_measured() {
            true => "express",
            false => "express*",
        };
        let names = ["direction", "copies", "bytes", express, "rate", "driver*"];
        let mut text = table_row(&WIDTHS, &names);
        for row in &self.boosted {
            let unknown = || "–".to_owned();
            let rate = |ns: u64| byte_rate(row.bytes as f64 / ns.max(1) as f64);
            text.push_str(&table_row(
                &WIDTHS,
                &[
                    row.route.words().to_owned(),
                    row.copies.to_string(),
                    rounded_size(row.bytes),
                    row.express_ns.map_or_else(unknown, duration),
                    row.express_ns.map_or_else(unknown, rate),
                    row.driver_ns.map_or_else(unknown, duration),
                ],
            ));
        }
        text.push_str(&match &self.profile {
            Some(profile) => format!("*: computed with profile {profile}.\n"),
            None => "*: not known; run `pinlane calibrate` once.\n".to_owned(),
        });
        text
    }

    /// What was saved, if both times of every row are known.
    fn saved(&self) -> Option<String> {
        let sum =
            |ns: fn(&BoostRow) -> Option<u64>| -> Option<u64> { self.boosted.iter().map(ns).sum() };
        let (express_ns, driver_ns) = (sum(|row| row.express_ns)?, sum(|row| row.driver_ns)?);
        let saved_ns = driver_ns.checked_sub(express_ns).filter(|ns| *ns > 0)?;
        let factor = driver_ns as f64 / express_ns.max(1) as f64;
        Some(format!(
            "Saved about {}: these copies took {factor:.1} times less.\n",
            duration(saved_ns)
        ))
    }
}

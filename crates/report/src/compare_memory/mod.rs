//! `compare`: kinds of host memory side by side.

mod advice;
mod chart;
mod html;
mod text;

use serde::{Deserialize, Serialize};

use crate::format::{duration, exact_size};
use crate::{CopyStats, MemoryKind, Origin, Route};

/// One kind of memory, both directions.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct CompareRow {
    /// The kind of memory.
    pub memory: MemoryKind,
    /// Time to allocate and touch memory for one copy, once; 0 if not measured.
    pub get_ns: u64,
    /// Host to device.
    pub h2d: CopyStats,
    /// Device to host.
    pub d2h: CopyStats,
}

/// Bandwidth of the link, one way.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct LinkLimit {
    /// 1e9 bytes a second.
    pub gb_per_s: f64,
    /// Source of the limit.
    #[serde(flatten)]
    pub basis: LinkBasis,
}

/// Source of a [`LinkLimit`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "basis", rename_all = "snake_case")]
pub enum LinkBasis {
    /// PCI Express of this generation and width, minus packet overhead.
    Pcie {
        /// Such as 5.
        generation: u32,
        /// Lanes, such as 16.
        width: u32,
    },
    /// The profile of the simulated device.
    Profile,
    /// The fastest copy of this report: the link is unknown.
    Fastest,
}

/// Kinds of host memory side by side.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Compare {
    /// The device.
    #[serde(flatten)]
    pub origin: Origin,
    /// Bytes of one copy.
    pub bytes: u64,
    /// Copies per figure.
    pub repeat: u32,
    /// How many times faster a pinned copy to the device is than a pageable one.
    pub speedup: f64,
    /// Bandwidth of the link.
    pub limit: LinkLimit,
    /// In the order of [`MemoryKind::ALL`]: pageable, pinned, and others that the device supports.
    pub rows: Vec<CompareRow>,
    /// Notes for the reader: kinds that this device does not support, how figures were measured.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Compare {
    /// A comparison. The speed-up is computed from the rows; so is the limit if it is `None`. Returns `None`
    /// without rows of pageable and pinned memory.
    #[must_use]
    pub fn new(
        origin: Origin,
        bytes: u64,
        repeat: u32,
        limit: Option<LinkLimit>,
        rows: Vec<CompareRow>,
    ) -> Option<Self> {
        let rate = |memory| {
            let row = rows.iter().find(|row: &&CompareRow| row.memory == memory);
            row.map(|row| row.h2d.gb_per_s)
        };
        let speedup = rate(MemoryKind::Pinned)? / rate(MemoryKind::Pageable)?;
        let fastest = fastest_gb_per_s(&rows);
        Some(Self {
            origin,
            bytes,
            repeat,
            speedup,
            limit: limit.unwrap_or(LinkLimit {
                gb_per_s: fastest,
                basis: LinkBasis::Fastest,
            }),
            rows,
            notes: Vec::new(),
        })
    }

    /// The row of a kind.
    #[must_use]
    pub fn row(&self, memory: MemoryKind) -> Option<&CompareRow> {
        self.rows.iter().find(|row| row.memory == memory)
    }

    /// Size and number of the copies.
    fn copies_label(&self) -> String {
        let bytes = exact_size(self.bytes);
        match self.origin.is_measured() {
            true if self.repeat == 1 => format!("{bytes} per copy, one copy each"),
            true => format!("{bytes} per copy, median of {}", self.repeat),
            false => format!("{bytes} per copy, by the simulated clock"),
        }
    }
}

impl CompareRow {
    fn stats(&self, route: Route) -> &CopyStats {
        match route {
            Route::D2h => &self.d2h,
            Route::H2d | Route::Both => &self.h2d,
        }
    }

    /// Allocation time, or `–` if not measured.
    fn allocation(&self) -> String {
        match self.get_ns {
            0 => "–".to_owned(),
            ns => duration(ns),
        }
    }
}

fn fastest_gb_per_s(rows: &[CompareRow]) -> f64 {
    let rates = rows.iter().flat_map(|row| [row.h2d, row.d2h]);
    rates.map(|stats| stats.gb_per_s).fold(0.0, f64::max)
}

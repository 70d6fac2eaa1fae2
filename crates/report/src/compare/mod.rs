//! Kinds of host memory against each other.

mod advice;
mod chart;
mod html;
mod svg;
mod text;

use serde::{Deserialize, Serialize};

use crate::{Figure, MemoryKind, Origin, SCHEMA_VERSION};

/// One kind of memory, both directions.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The kind.
    pub memory: MemoryKind,
    /// What it takes to get memory for one copy, once, all pages in place.
    pub get_ns: u64,
    /// Host to device.
    pub h2d: Figure,
    /// Device to host.
    pub d2h: Figure,
}

/// What the link can carry one way.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct LinkLimit {
    /// 1e9 bytes a second.
    pub gb_per_s: f64,
    /// How that is known.
    #[serde(flatten)]
    pub basis: LinkBasis,
}

/// How a [`LinkLimit`] is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "basis", rename_all = "snake_case")]
pub enum LinkBasis {
    /// PCI Express of this generation and width, less what its packets need for themselves.
    Pcie {
        /// Such as 5.
        generation: u32,
        /// Lanes, such as 16.
        width: u32,
    },
    /// What the profile of the simulated device says.
    Profile,
    /// The fastest copy of this report: the link itself is not known.
    Fastest,
}

/// Kinds of host memory against each other, measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Compare {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// The device.
    #[serde(flatten)]
    pub origin: Origin,
    /// Bytes of one copy.
    pub bytes: u64,
    /// Copies that each figure is made of.
    pub repeat: u32,
    /// How many times faster a pinned copy to the device is than a pageable one.
    pub speedup: f64,
    /// What the link can carry.
    pub limit: LinkLimit,
    /// In the order of [`MemoryKind::ALL`]; pageable and pinned always, others where the device
    /// offers them.
    pub rows: Vec<Row>,
    /// What the reader should know: kinds that this device does not offer, how figures came about.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Compare {
    /// A comparison; the speed-up follows from the rows, and the limit too where it is not known.
    /// `None` without pageable and pinned memory.
    #[must_use]
    pub fn new(
        origin: Origin,
        bytes: u64,
        repeat: u32,
        limit: Option<LinkLimit>,
        rows: Vec<Row>,
    ) -> Option<Self> {
        let rate = |memory| {
            let row = rows.iter().find(|row: &&Row| row.memory == memory);
            row.map(|row| row.h2d.gb_per_s)
        };
        let speedup = rate(MemoryKind::Pinned)? / rate(MemoryKind::Pageable)?;
        let rates = rows.iter().flat_map(|row| [row.h2d, row.d2h]);
        let fastest = rates.map(|figure| figure.gb_per_s).fold(0.0, f64::max);
        Some(Self {
            schema: SCHEMA_VERSION,
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
    pub fn row(&self, memory: MemoryKind) -> Option<&Row> {
        self.rows.iter().find(|row| row.memory == memory)
    }

    /// The report as JSON, over several lines, with a line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("plain data becomes JSON");
        json.push('\n');
        json
    }
}

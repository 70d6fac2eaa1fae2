//! Pageable against pinned memory.

use std::fmt::Write;

use serde::Serialize;

use crate::format::{one_decimal, size};
use crate::{Origin, SCHEMA_VERSION};

/// What kind of host memory a row is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Ordinary memory.
    Pageable,
    /// Memory that the driver allocated page-locked.
    Pinned,
    /// Ordinary memory that was page-locked in place.
    Registered,
}

impl MemoryKind {
    fn name(self) -> &'static str {
        match self {
            Self::Pageable => "pageable",
            Self::Pinned => "pinned",
            Self::Registered => "registered",
        }
    }
}

/// Copies of one kind in one direction.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Figure {
    /// The middle one of the copies' times.
    pub median_ns: u64,
    /// The shortest of them.
    pub best_ns: u64,
    /// 1e9 bytes a second, by the median.
    pub gb_per_s: f64,
}

impl Figure {
    /// The figure of copies of `bytes` each. `None` when there is none, or when no time passed.
    #[must_use]
    pub fn from_times(bytes: u64, times_ns: &[u64]) -> Option<Self> {
        let mut sorted = times_ns.to_vec();
        sorted.sort_unstable();
        let best_ns = *sorted.first()?;
        let middle = sorted.len() / 2;
        let median_ns = if sorted.len().is_multiple_of(2) {
            sorted[middle - 1].midpoint(sorted[middle])
        } else {
            sorted[middle]
        };
        // Bytes a nanosecond are GB/s.
        (best_ns > 0).then(|| Self {
            median_ns,
            best_ns,
            gb_per_s: bytes as f64 / median_ns as f64,
        })
    }
}

/// One kind of memory, both directions.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The kind.
    pub memory: MemoryKind,
    /// Host to device.
    pub h2d: Figure,
    /// Device to host.
    pub d2h: Figure,
}

/// Pageable against pinned memory, measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
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
    /// How many times faster a pinned copy to the device is.
    pub speedup: f64,
    /// Ordinary memory.
    pub pageable: Row,
    /// Pinned memory.
    pub pinned: Row,
    /// Further kinds, where the device has them.
    pub others: Vec<Row>,
}

impl Compare {
    /// A comparison; the speed-up follows from the rows.
    #[must_use]
    pub fn new(
        origin: Origin,
        bytes: u64,
        repeat: u32,
        pageable: Row,
        pinned: Row,
        others: Vec<Row>,
    ) -> Self {
        Self {
            schema: SCHEMA_VERSION,
            origin,
            bytes,
            repeat,
            speedup: pinned.h2d.gb_per_s / pageable.h2d.gb_per_s,
            pageable,
            pinned,
            others,
        }
    }

    /// The classic block, the origin, and a table of all that was measured.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = self.block();
        text.push_str(&self.origin.line());
        text.push_str("\n\n");
        text.push_str(&self.table());
        text
    }

    /// The report as JSON, over several lines, with a line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("plain data becomes JSON");
        json.push('\n');
        json
    }

    /// Labels and order are fixed.
    fn block(&self) -> String {
        let pageable = one_decimal(self.pageable.h2d.gb_per_s);
        let pinned = one_decimal(self.pinned.h2d.gb_per_s);
        let speedup = self.speedup;
        format!(
            "\
=== Pinned vs Pageable Memory Transfer ===
[Pageable (malloc) Memory]
Allocation: float* h = malloc(bytes)
Copy path: CPU_RAM -> [staging buffer] -> GPU
Synchronous: YES (cudaMemcpy blocks CPU)
Transfer BW: ~{pageable} GB/s (PCIe, pageable)
[Pinned (cudaMallocHost) Memory]
Allocation: cudaMallocHost(&h, bytes)
Copy path: CPU_RAM -> GPU (direct DMA)
Asynchronous: YES (cudaMemcpyAsync)
Transfer BW: ~{pinned} GB/s (PCIe, pinned)
Speedup: {speedup:.2}x faster transfers!
[Important Rules]
cudaMemcpyAsync requires pinned memory
Free pinned with cudaFreeHost, NOT free()
Don't over-allocate: OS needs pageable memory too
"
        )
    }

    fn table(&self) -> String {
        let mut text = format!(
            "{:<12}{:>16}{:>16}\n",
            "memory", "host to device", "device to host"
        );
        for row in [&self.pageable, &self.pinned]
            .into_iter()
            .chain(&self.others)
        {
            let rate = |figure: &Figure| format!("{:.1} GB/s", figure.gb_per_s);
            let _ = writeln!(
                text,
                "{:<12}{:>16}{:>16}",
                row.memory.name(),
                rate(&row.h2d),
                rate(&row.d2h)
            );
        }
        let _ = writeln!(
            text,
            "{} a copy, median of {}; GB is 10^9 bytes",
            size(self.bytes),
            self.repeat
        );
        text
    }
}

//! A comparison as text.

use std::fmt::Write;

use super::{Compare, LinkBasis, Row};
use crate::format::{one_decimal, size};
use crate::timeline::layout::words::clean;
use crate::{Figure, MemoryKind, Origin};

impl Compare {
    /// The classic block, the origin, a table of all that was measured, and what follows from it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = self.block();
        text.push_str(&clean(&self.origin.line()));
        text.push_str("\n\n");
        text.push_str(&self.table());
        text.push_str(&self.footer());
        let advice = self.advice();
        if !advice.is_empty() {
            text.push('\n');
        }
        for sentence in advice {
            let _ = writeln!(text, "{sentence}");
        }
        text
    }

    fn rate(&self, memory: MemoryKind) -> f64 {
        self.row(memory).map_or(f64::NAN, |row| row.h2d.gb_per_s)
    }

    /// Labels and order are fixed.
    fn block(&self) -> String {
        let pageable = one_decimal(self.rate(MemoryKind::Pageable));
        let pinned = one_decimal(self.rate(MemoryKind::Pinned));
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
            "{:<14}  {:^24}  {:>19}\n",
            "", "host to device", "device to host"
        );
        let _ = writeln!(
            text,
            "{:<14}  {:>6} {:>8} {:>8}  {:>6} {:>8} {:>8}  {:>10}",
            "memory", "GB/s", "speed", "of link", "GB/s", "speed", "of link", "getting it"
        );
        for row in &self.rows {
            let _ = writeln!(
                text,
                "{:<14}  {}  {}  {:>10}",
                row.memory.name(),
                self.cells(row, |row| &row.h2d),
                self.cells(row, |row| &row.d2h),
                row.getting()
            );
        }
        text
    }

    /// One direction of a kind.
    fn cells(&self, row: &Row, way: impl Fn(&Row) -> &Figure) -> String {
        let rate = way(row).gb_per_s;
        let speed = self
            .row(MemoryKind::Pageable)
            .map_or(f64::NAN, |pageable| rate / way(pageable).gb_per_s);
        let share = rate / self.limit.gb_per_s * 100.0;
        format!(
            "{rate:>6.1} {:>8} {:>8}",
            format!("{speed:.2}x"),
            format!("{share:.0}%")
        )
    }

    fn footer(&self) -> String {
        let bytes = size(self.bytes);
        let copies = match (&self.origin, self.repeat) {
            (Origin::Simulated { .. }, _) => format!("{bytes} a copy, on the simulated clock"),
            (_, repeat) => format!("{bytes} a copy, median of {repeat}"),
        };
        let limit = self.limit.gb_per_s;
        let link = match self.limit.basis {
            LinkBasis::Pcie { generation, width } => format!(
                "the link, PCIe {generation}.0 x{width} less its packets' own bytes, \
                 carries {limit:.1} GB/s"
            ),
            LinkBasis::Profile => format!("the link carries {limit:.1} GB/s by the profile"),
            LinkBasis::Fastest => {
                format!(
                    "the link is not known: its limit is taken as the fastest copy, {limit:.1} GB/s"
                )
            }
        };
        let unseen = match self.rows.iter().any(|row| row.get_ns == 0) {
            true => " (–: no clock saw it)",
            false => "",
        };
        let mut text = format!(
            "{copies}; GB is 10^9 bytes; speed is against pageable.\n\
             Getting it: allocating and touching memory for one copy, once{unseen}.\n\
             Of link: {link}.\n"
        );
        for note in &self.notes {
            let _ = writeln!(text, "{}.", clean(note));
        }
        text
    }
}

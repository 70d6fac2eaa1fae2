//! A comparison as text.

use super::{Compare, CompareRow, LinkBasis};
use crate::format::{byte_rate, column_rate, one_decimal};
use crate::text_layout::{notes_as_text, sanitize, table_row};
use crate::{MemoryKind, Route};

impl Compare {
    /// The classic block, the origin, a table of all figures, and advice.
    #[must_use]
    pub fn to_text(&self) -> String {
        let (block, origin) = (self.block(), sanitize(&self.origin.line()));
        let (table, footer) = (self.table(), self.footer());
        let mut text = format!("{block}{origin}\n\n{table}{footer}");
        let advice = self.advice();
        if !advice.is_empty() {
            text.push('\n');
        }
        text.extend(advice.into_iter().map(|sentence| sentence + "\n"));
        text
    }

    fn rate(&self, memory: MemoryKind) -> f64 {
        self.row(memory).map_or(f64::NAN, |row| row.h2d.gb_per_s)
    }

    /// Labels and order are fixed.
    fn block(&self) -> String {
        let label = |memory| match self.rate(memory) {
            // One decimal would leave no digit.
            rate if rate < 0.095 => byte_rate(rate),
            rate => format!("{} GB/s", one_decimal(rate)),
        };
        let [pageable, pinned] = [MemoryKind::Pageable, MemoryKind::Pinned].map(label);
        let speedup = self.speedup;
        format!(
            "\
=== Pinned vs Pageable Memory Transfer ===
[Pageable (malloc) Memory]
Allocation: float* h = malloc(bytes)
Copy path: CPU_RAM -> [staging buffer] -> GPU
Synchronous: YES (cudaMemcpy blocks CPU)
Transfer BW: ~{pageable} (PCIe, pageable)
[Pinned (cudaMallocHost) Memory]
Allocation: cudaMallocHost(&h, bytes)
Copy path: CPU_RAM -> GPU (direct DMA)
Asynchronous: YES (cudaMemcpyAsync)
Transfer BW: ~{pinned} (PCIe, pinned)
Speedup: {speedup:.2}x faster transfers!
[Important Rules]
cudaMemcpyAsync requires pinned memory
Free pinned with cudaFreeHost, NOT free()
Don't over-allocate: OS needs pageable memory too
"
        )
    }

    fn table(&self) -> String {
        const WIDTHS: [usize; 8] = [14, 8, 9, 9, 8, 9, 9, 12];
        let mut text = table_row(&[14, 21, 26], &["", "host to device", "device to host"]);
        let columns = ["GB/s", "speed", "of link"];
        let names = [&["memory"][..], &columns, &columns, &["allocation"]];
        text.push_str(&table_row(&WIDTHS, &names.concat()));
        for row in &self.rows {
            let [up, down] = [Route::H2d, Route::D2h].map(|route| self.cells(row, route));
            let (name, allocation) = ([row.memory.name().to_owned()], [row.allocation()]);
            let cells = [&name[..], &up, &down, &allocation].concat();
            text.push_str(&table_row(&WIDTHS, &cells));
        }
        text
    }

    fn cells(&self, row: &CompareRow, route: Route) -> [String; 3] {
        let rate = row.stats(route).gb_per_s;
        let pageable = self.row(MemoryKind::Pageable);
        let speed = pageable.map_or(f64::NAN, |pageable| rate / pageable.stats(route).gb_per_s);
        let share = rate / self.limit.gb_per_s * 100.0;
        [
            column_rate(rate),
            format!("{speed:.2}x"),
            format!("{share:.0}%"),
        ]
    }

    fn footer(&self) -> String {
        let copies = self.copies_label();
        let limit = self.limit.gb_per_s;
        let link = match self.limit.basis {
            LinkBasis::Pcie { generation, width } => format!(
                "PCIe {generation}.0 x{width} carries {limit:.1} GB/s after packet overhead"
            ),
            LinkBasis::Profile => format!("the link of the profile carries {limit:.1} GB/s"),
            LinkBasis::Fastest => format!(
                "the link is unknown; its limit is assumed to be the fastest copy, {limit:.1} GB/s"
            ),
        };
        let unmeasured = match self.rows.iter().any(|row| row.get_ns == 0) {
            true => " (–: not measured)",
            false => "",
        };
        format!(
            "{copies}; GB is 10^9 bytes; speed is relative to pageable.\n\
             Allocation: allocating and touching memory for one copy, once{unmeasured}.\n\
             Of link: {link}.\n{}",
            notes_as_text(&self.notes)
        )
    }
}

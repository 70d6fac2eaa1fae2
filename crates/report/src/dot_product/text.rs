//! A dot product as text.

use super::{Dot, DotKernel, DotTree, DotWay};
use crate::Origin;
use crate::format::{counted, duration, short_size, speedup_label};
use crate::text_layout::{sanitize, table_row};

impl Dot {
    /// The job, the origin, a table of the three ways, the speed-ups, and the results.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "=== Dot Product: Standard vs Pinned vs Express ===\n{}\n{}\n\n",
            self.headline(),
            sanitize(&self.origin.line())
        );
        if self.job.items > 0 {
            text.push_str(&format!("{}\n{}\n", self.table(), self.speedups()));
        }
        text + &self.results()
    }

    fn headline(&self) -> String {
        let kernel = match self.job.kernel {
            DotKernel::Tree => "tree kernel in double precision",
            DotKernel::Atomic => "atomic kernel in single precision",
        };
        match self.job.items {
            0 => format!("No elements: nothing to copy; {kernel}"),
            items => format!(
                "{} per vector, {} in total; {kernel}",
                counted(items, "element"),
                short_size(self.bytes)
            ),
        }
    }

    fn table(&self) -> String {
        const WIDTHS: [usize; 5] = [10, 14, 12, 12, 14];
        let names = ["memory", "copy", "kernel", "result", "total"];
        let mut text = table_row(&WIDTHS, &names);
        for (name, way) in self.named_ways() {
            text.push_str(&match way.times {
                None => table_row(&WIDTHS, &[name, "not modelled", "", "", "not modelled"]),
                Some(it) => {
                    let times_ns = [it.copy_ns, it.kernel_ns, it.result_ns, it.total_ns];
                    let cells = times_ns.map(duration);
                    table_row(&WIDTHS, &[&[name.to_owned()], &cells[..]].concat())
                }
            });
        }
        text.push_str(&match self.job.repeat {
            1 => "One run of each.\n".to_owned(),
            runs => format!("Median of {runs} runs of each.\n"),
        });
        if matches!(self.origin, Origin::Simulated { .. }) {
            text.push_str(match self.ways.express.times {
                Some(_) => "Express: rates of section [express] of the profile; small copies go through the driver.\n",
                None => "Express: the profile has no section [express] with its rates.\n",
            });
        }
        text
    }

    fn speedups(&self) -> String {
        let mut text = String::new();
        for (speedup, what) in [
            (self.speedup_pinned, "pinned over standard"),
            (self.speedup_express, "express over standard"),
        ] {
            if speedup.is_some() {
                text.push_str(&format!("Speedup: {} {what}\n", speedup_label(speedup)));
            }
        }
        if text.is_empty() {
            text.push_str("Speedup: none; nothing takes time on this device\n");
        }
        if let Some(ns) = self.pinned_memory_ns {
            let took = duration(ns);
            text.push_str(&format!(
                "Allocating pinned memory took {took}, not included above.\n"
            ));
        }
        text
    }

    fn results(&self) -> String {
        let same = self.same_bits;
        let value = self.reference;
        let reference = format!("Reference: {value} (double precision, compensated)\n");
        let line = |(name, way): (&str, &DotWay)| {
            let (value, error) = (way.result.value, relative(way.result.relative_error));
            format!("Result, {name}: {value}, relative error {error}\n")
        };
        let mut text = match same {
            true => {
                let pinned = &self.ways.pinned.result;
                let (value, error) = (pinned.value, relative(pinned.relative_error));
                format!("Result: {value}\n{reference}Relative error: {error}\n")
            }
            false => self.named_ways().map(line).concat() + &reference,
        };
        text.push_str(match (same, self.job.kernel) {
            (_, _) if self.job.items == 0 => "",
            (true, _) => "All runs of all three ways gave the same bits.\n",
            (false, DotKernel::Atomic) => "Runs gave different bits: atomics add in any order.\n",
            (false, DotKernel::Tree) => {
                "FAILED: runs gave different bits; the tree kernel must be reproducible.\n"
            }
        });
        if let Some(tree) = &self.tree {
            text.push_str(&self.tree_line(tree));
        }
        text
    }

    fn named_ways(&self) -> [(&'static str, &DotWay); 3] {
        let ways = &self.ways;
        [
            ("standard", &ways.standard),
            ("pinned", &ways.pinned),
            ("express", &ways.express),
        ]
    }

    /// The tree kernel compared with the atomic one.
    fn tree_line(&self, tree: &DotTree) -> String {
        let mut text = format!(
            "The tree kernel takes {} with a relative error of {}",
            duration(tree.kernel_ns),
            relative(tree.result.relative_error)
        );
        if let Some(atomic) = self.ways.pinned.times
            && tree.kernel_ns > 0
        {
            let longer = atomic.kernel_ns as f64 / tree.kernel_ns as f64;
            text.push_str(&format!("; the atomic one takes {longer:.1} times as long"));
        }
        text.push_str(".\n");
        text
    }
}

fn relative(error: f64) -> String {
    match error {
        0.0 => "0".to_owned(),
        other => format!("{other:.1e}"),
    }
}

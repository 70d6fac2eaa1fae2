//! A dot product as text.

use super::{Dot, DotKernel, DotTree, DotWay, DotWays};
use crate::Origin;
use crate::format::amount;
use crate::timeline::layout::words::{clean, duration, times};

impl Dot {
    /// What was done, the origin, a table of the three ways, the speed-ups, and how right it is.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "=== Dot Product: Standard vs Pinned vs Express ===\n{}\n{}\n\n",
            self.headline(),
            clean(&self.origin.line())
        );
        if self.job.items > 0 {
            text.push_str(&self.table());
            text.push('\n');
            text.push_str(&self.speedups());
            text.push('\n');
        }
        text.push_str(&self.results());
        text
    }

    fn headline(&self) -> String {
        let kernel = match self.job.kernel {
            DotKernel::Tree => "tree kernel in double precision",
            DotKernel::Atomic => "atomic kernel in single precision",
        };
        match self.job.items {
            0 => format!("No elements: nothing to copy; {kernel}"),
            1 => format!(
                "1 element a vector, {} in all; {kernel}",
                amount(self.bytes)
            ),
            items => format!(
                "{items} elements a vector, {} in all; {kernel}",
                amount(self.bytes)
            ),
        }
    }

    fn table(&self) -> String {
        let mut text = row(
            "memory",
            ["copy", "kernel", "result", "total"].map(str::to_owned),
        );
        for (name, way) in self.named_ways() {
            text.push_str(&cells(name, way));
        }
        text.push_str(&match self.job.repeat {
            1 => "One run of each.\n".to_owned(),
            runs => format!("The median of {runs} runs of each.\n"),
        });
        if matches!(self.origin, Origin::Simulated { .. }) {
            text.push_str(match self.ways.express.times {
                Some(_) => "Express: copies as section [express] of the profile says, small ones by the driver.\n",
                None => "Express: the profile has no section [express] that says how fast it is.\n",
            });
        }
        text
    }

    fn speedups(&self) -> String {
        let mut text = String::new();
        for (speedup, what) in [
            (self.speedup_pinned, "pinned against standard"),
            (self.speedup_express, "express against standard"),
        ] {
            if speedup.is_some() {
                text.push_str(&format!("Speedup: {} {what}\n", times(speedup)));
            }
        }
        if text.is_empty() {
            text.push_str("Speedup: none, since nothing takes time on this device\n");
        }
        if let Some(ns) = self.pinned_memory_ns {
            let took = duration(ns);
            text.push_str(&format!(
                "Pinned memory in {took}, before the clock was started.\n"
            ));
        }
        text
    }

    fn results(&self) -> String {
        let mut text = String::new();
        let same = self.same_bits;
        if same {
            let pinned = &self.ways.pinned.result;
            text.push_str(&format!("Result: {}\n", pinned.value));
            text.push_str(&self.reference_line());
            let off = error(pinned.relative_error);
            text.push_str(&format!("Relative error: {off}\n"));
        } else {
            for (name, way) in self.named_ways() {
                let (value, off) = (way.result.value, error(way.result.relative_error));
                text.push_str(&format!("Result, {name}: {value}, relative error {off}\n"));
            }
            text.push_str(&self.reference_line());
        }
        text.push_str(match (same, self.job.kernel) {
            (_, _) if self.job.items == 0 => "",
            (true, _) => "All runs of all three gave the same bits.\n",
            (false, DotKernel::Atomic) => "Runs differ in their bits: atomics add in any order.\n",
            (false, DotKernel::Tree) => "FAILED: runs differ in their bits, which must never be.\n",
        });
        if let Some(tree) = &self.tree {
            text.push_str(&self.beside(tree));
        }
        text
    }

    fn reference_line(&self) -> String {
        let value = self.reference;
        format!("Reference: {value} (double precision, compensated)\n")
    }

    fn named_ways(&self) -> [(&'static str, &DotWay); 3] {
        let DotWays {
            standard,
            pinned,
            express,
        } = &self.ways;
        [
            ("standard", standard),
            ("pinned", pinned),
            ("express", express),
        ]
    }

    /// What the atomic kernel costs.
    fn beside(&self, tree: &DotTree) -> String {
        let mut text = format!(
            "The tree kernel takes {} and is {} off",
            duration(tree.kernel_ns),
            error(tree.result.relative_error)
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

fn cells(name: &str, way: &DotWay) -> String {
    let cells = way.times.map_or_else(
        || ["not modelled", "", "", "not modelled"].map(str::to_owned),
        |times| {
            [
                times.copy_ns,
                times.kernel_ns,
                times.result_ns,
                times.total_ns,
            ]
            .map(duration)
        },
    );
    row(name, cells)
}

fn row(name: &str, [copy, kernel, result, total]: [String; 4]) -> String {
    format!("{name:<10}{copy:>14}{kernel:>12}{result:>12}{total:>14}\n")
}

fn error(relative: f64) -> String {
    match relative {
        0.0 => "0".to_owned(),
        other => format!("{other:.1e}"),
    }
}

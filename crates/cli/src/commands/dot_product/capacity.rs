//! Checks that the vectors fit, before anything is allocated.

use anyhow::bail;
use pinlane::Device;

use crate::system;

/// One element of each vector.
const ITEM_BYTES: u64 = 8;

/// For partial sums, the result, and rounding of allocations.
const OVERHEAD_BYTES: u64 = 8 << 20;

struct Capacity {
    what: &'static str,
    free_bytes: u64,
    /// How many copies of both vectors it holds.
    copies: u64,
    advice: &'static str,
}

impl Capacity {
    fn items(&self) -> u64 {
        self.free_bytes / (ITEM_BYTES * self.copies)
    }
}

/// Fails if the vectors do not fit, and says how many elements would.
pub(super) fn check(device: &Device, items: usize) -> anyhow::Result<()> {
    let budget = device.budget();
    let used_bytes = budget.in_use_bytes().saturating_sub(budget.idle_bytes());
    let capacities = capacities(
        device.memory_info()?.free_bytes,
        budget.limit_bytes()?.saturating_sub(used_bytes),
        system::available_bytes(),
        device.info().simulated.is_some(),
    );
    match refusal(&capacities, items as u64) {
        Some(reason) => bail!(reason),
        None => Ok(()),
    }
}

fn capacities(device: u64, budget: u64, host: u64, simulated: bool) -> [Capacity; 3] {
    let capacity = |what, free_bytes, copies, advice| Capacity {
        what,
        free_bytes,
        copies,
        advice,
    };
    let on_device = device.saturating_sub(OVERHEAD_BYTES);
    // Leaves some for the result, the express lane and rounding.
    let pinned = budget / 3 * 2;
    // Pinned and pageable, plus the memory of a simulated device.
    let copies = if simulated { 3 } else { 2 };
    [
        capacity("device memory", on_device, 1, ""),
        capacity("pinned memory", pinned, 1, ", or set PINLANE_PINNED_LIMIT"),
        capacity("host memory", system::usable_bytes(host), copies, ""),
    ]
}

/// Why the elements do not fit, and how many fit everywhere.
fn refusal(capacities: &[Capacity], items: u64) -> Option<String> {
    let full = capacities.iter().find(|it| items > it.items())?;
    let fitting = capacities.iter().map(Capacity::items).min()?;
    Some(format!(
        "-n {items} needs {} of {}, but {} are free; use -n {fitting} or less{}",
        gb(items.saturating_mul(ITEM_BYTES * full.copies)),
        full.what,
        gb(full.free_bytes),
        full.advice
    ))
}

fn gb(bytes: u64) -> String {
    format!("{:.2} GB", bytes as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;

    #[test]
    fn the_suggested_number_fits_everywhere() {
        for (budget_bytes, host_bytes, simulated) in [
            (8 * GB, 16 * GB, false),
            (8 * GB, 16 * GB, true),
            (u64::MAX, 16 * GB, true),
            (GB, u64::MAX, false),
            (0, 0, false),
        ] {
            let capacities = capacities(141 * GB, budget_bytes, host_bytes, simulated);
            let message = refusal(&capacities, u64::MAX / 8).expect("too many");
            let (_, suggested) = message.split_once("use -n ").expect("a suggestion");
            let (suggested, _) = suggested.split_once(' ').expect("a number");
            let suggested = suggested.parse().expect("a number");
            assert_eq!(refusal(&capacities, suggested), None, "{message}");
            assert!(refusal(&capacities, suggested + 1).is_some(), "{message}");
        }
    }

    #[test]
    fn the_host_holds_several_copies() {
        // The budget allows it, but the memory is missing.
        let capacities = capacities(141 * GB, u64::MAX, 16 * GB, true);
        let message = refusal(&capacities, GB).expect("too many");
        let needs = "needs 24.00 GB of host memory";
        assert!(message.contains(needs), "{message}");
    }
}

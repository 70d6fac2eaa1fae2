//! Whether vectors of this length fit, asked before anything is allocated.

use anyhow::bail;
use pinlane::Device;

use crate::doctor::facts;

/// Both vectors, an element of each.
const ITEM_BYTES: u64 = 8;

/// For partial sums, the result, and what allocations are rounded up to.
const BESIDE_BYTES: u64 = 8 << 20;

/// A place for vectors.
struct Room {
    what: &'static str,
    /// Free for them.
    bytes: u64,
    /// How often both vectors are there.
    times: u64,
    advice: &'static str,
}

impl Room {
    fn items(&self) -> u64 {
        self.bytes / (ITEM_BYTES * self.times)
    }
}

/// Fails where the device or the host has no room, with what would fit.
pub(super) fn check(device: &Device, items: usize) -> anyhow::Result<()> {
    let budget = device.budget();
    let rooms = rooms(
        device.memory_info()?.free_bytes,
        budget.limit_bytes()?.saturating_sub(budget.in_use_bytes()),
        facts::available_bytes().unwrap_or(u64::MAX),
        device.info().simulated.is_some(),
    );
    match refusal(&rooms, items as u64) {
        Some(reason) => bail!(reason),
        None => Ok(()),
    }
}

fn rooms(device_bytes: u64, budget_bytes: u64, host_bytes: u64, simulated: bool) -> [Room; 3] {
    [
        Room {
            what: "device memory",
            bytes: device_bytes.saturating_sub(BESIDE_BYTES),
            times: 1,
            advice: "",
        },
        Room {
            what: "pinned memory",
            // The rest is for the result, the express lane, and rounding.
            bytes: budget_bytes / 3 * 2,
            times: 1,
            advice: ", or set PINLANE_PINNED_LIMIT",
        },
        Room {
            what: "the host's memory",
            // The system needs some, too.
            bytes: host_bytes / 16 * 15,
            // Pinned and ordinary; a simulated device has its memory here as well.
            times: if simulated { 3 } else { 2 },
            advice: "",
        },
    ]
}

/// Why so many elements do not fit. What is offered instead fits everywhere.
fn refusal(rooms: &[Room], items: u64) -> Option<String> {
    let full = rooms.iter().find(|room| items > room.items())?;
    let fitting = rooms.iter().map(Room::items).min()?;
    Some(format!(
        "-n {items} needs {} of {}, where {} are free; choose -n {fitting} or less{}",
        gb(items.saturating_mul(ITEM_BYTES * full.times)),
        full.what,
        gb(full.bytes),
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
    fn what_is_offered_fits_everywhere() {
        for (budget_bytes, host_bytes, simulated) in [
            (8 * GB, 16 * GB, false),
            (8 * GB, 16 * GB, true),
            (u64::MAX, 16 * GB, true),
            (GB, u64::MAX, false),
            (0, 0, false),
        ] {
            let rooms = rooms(141 * GB, budget_bytes, host_bytes, simulated);
            let said = refusal(&rooms, u64::MAX / 8).expect("too many");
            let offered = said.split("choose -n ").nth(1).expect("an offer");
            let offered = offered.split(' ').next().expect("a number");
            let offered = offered.parse().expect("a number");
            assert_eq!(refusal(&rooms, offered), None, "{said}");
            assert!(refusal(&rooms, offered + 1).is_some(), "{said}");
        }
    }

    #[test]
    fn the_host_holds_vectors_more_than_once() {
        // May be pinned, all of it, but is not there.
        let rooms = rooms(141 * GB, u64::MAX, 16 * GB, true);
        let said = refusal(&rooms, GB).expect("too many");
        assert!(
            said.contains("needs 24.00 GB of the host's memory"),
            "{said}"
        );
    }
}

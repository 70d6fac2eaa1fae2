//! What an operation costs as a function of its size.

use serde::{Deserialize, Serialize};

use crate::ProfileError;

const NS_PER_S: u128 = 1_000_000_000;
const MIB: u128 = 1 << 20;

/// Nanoseconds of a copy of so many bytes: `latency_ns` for none, straight lines through the
/// knots, and `bytes_per_s` beyond the last knot. With no knots it is the textbook's α + bytes/β.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostCurve {
    /// Cost of an empty copy.
    pub latency_ns: u64,
    /// Rate beyond the last knot; 0 means that bytes cost nothing there.
    pub bytes_per_s: u64,
    /// Measured points `[bytes, ns]`, bytes rising, ns not falling. May be empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub knots: Vec<[u64; 2]>,
}

impl CostCurve {
    /// The curve α + bytes/β.
    #[must_use]
    pub fn straight(latency_ns: u64, bytes_per_s: u64) -> Self {
        Self {
            latency_ns,
            bytes_per_s,
            knots: Vec::new(),
        }
    }

    /// Nanoseconds for `bytes`, rounded down; `u64::MAX` where the sum would not fit.
    #[must_use]
    pub fn ns(&self, bytes: u64) -> u64 {
        let mut from = [0, self.latency_ns];
        for &to in &self.knots {
            if bytes <= to[0] {
                return between(from, to, bytes);
            }
            from = to;
        }
        let beyond = ns_at_rate(bytes - from[0], self.bytes_per_s);
        from[1].saturating_add(beyond)
    }

    /// Checks what [`ns`](Self::ns) relies on; `field` is where the curve stands in its profile.
    pub(crate) fn validate(&self, field: &str) -> Result<(), ProfileError> {
        let mut last = [0, self.latency_ns];
        for (i, &knot) in self.knots.iter().enumerate() {
            if knot[0] <= last[0] {
                return Err(ProfileError::invalid(
                    format!("{field}.knots"),
                    format!(
                        "bytes of knot {i} do not rise: {} after {}",
                        knot[0], last[0]
                    ),
                ));
            }
            if knot[1] < last[1] {
                return Err(ProfileError::invalid(
                    format!("{field}.knots"),
                    format!("ns of knot {i} fall: {} after {}", knot[1], last[1]),
                ));
            }
            last = knot;
        }
        Ok(())
    }
}

/// The cost of pinning or releasing an area of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Area {
    /// Cost whatever the size.
    pub base_ns: u64,
    /// Cost of each MiB, counted to the byte.
    pub ns_per_mib: u64,
}

impl Area {
    /// Nanoseconds for `bytes`, rounded down.
    #[must_use]
    pub fn ns(&self, bytes: u64) -> u64 {
        let variable = u128::from(bytes) * u128::from(self.ns_per_mib) / MIB;
        self.base_ns.saturating_add(clamp(variable))
    }
}

/// Nanoseconds for `bytes` at a rate; 0 for the rate 0, which stands for "costs nothing".
pub(crate) fn ns_at_rate(bytes: u64, bytes_per_s: u64) -> u64 {
    if bytes_per_s == 0 {
        return 0;
    }
    clamp(u128::from(bytes) * NS_PER_S / u128::from(bytes_per_s))
}

/// The straight line from one knot to the next, at `bytes`.
fn between(from: [u64; 2], to: [u64; 2], bytes: u64) -> u64 {
    let rise = u128::from(to[1] - from[1]) * u128::from(bytes - from[0]);
    from[1] + clamp(rise / u128::from(to[0] - from[0]))
}

fn clamp(ns: u128) -> u64 {
    u64::try_from(ns).unwrap_or(u64::MAX)
}

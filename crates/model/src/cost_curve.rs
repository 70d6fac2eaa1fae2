//! What an operation costs, by its size.

use serde::{Deserialize, Serialize};

const NS_PER_S: u128 = 1_000_000_000;
const MIB: u128 = 1 << 20;

/// Duration of a copy by its size: `latency_ns` for 0 bytes, straight lines through the knots, and
/// `bytes_per_s` beyond the last knot. Without knots it is the textbook's α + bytes/β.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostCurve {
    /// Cost of an empty copy.
    pub latency_ns: u64,
    /// Rate beyond the last knot; 0 means that bytes are free there.
    pub bytes_per_s: u64,
    /// Measured points `[bytes, ns]`. Bytes must increase, ns must not decrease. May be empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub knots: Vec<[u64; 2]>,
}

impl CostCurve {
    /// Creates the curve α + bytes/β.
    #[must_use]
    pub fn straight(latency_ns: u64, bytes_per_s: u64) -> Self {
        Self {
            latency_ns,
            bytes_per_s,
            knots: Vec::new(),
        }
    }

    /// Nanoseconds for `bytes`, rounded down and saturating.
    #[must_use]
    pub fn ns(&self, bytes: u64) -> u64 {
        let mut from = [0, self.latency_ns];
        for &to in &self.knots {
            if bytes <= to[0] {
                let rise = u128::from(to[1] - from[1]) * u128::from(bytes - from[0]);
                return from[1] + clamp(rise / u128::from(to[0] - from[0]));
            }
            from = to;
        }
        from[1].saturating_add(ns_at_rate(bytes - from[0], self.bytes_per_s))
    }

    /// Checks the knots as [`ns`](Self::ns) relies on them; says what is wrong with them.
    pub(crate) fn check_knots(&self) -> Result<(), String> {
        let mut last = [0, self.latency_ns];
        for (i, &knot) in self.knots.iter().enumerate() {
            let ([bytes, ns], [last_bytes, last_ns]) = (knot, last);
            if bytes <= last_bytes {
                let why = "do not increase";
                return Err(format!(
                    "bytes of knot {i} {why}: {bytes} after {last_bytes}"
                ));
            }
            if ns < last_ns {
                return Err(format!("ns of knot {i} decrease: {ns} after {last_ns}"));
            }
            last = knot;
        }
        Ok(())
    }
}

/// A fixed cost plus a cost per MiB: what pinning and unpinning memory take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearCost {
    /// Cost independent of the size.
    pub base_ns: u64,
    /// Cost of each MiB, prorated to the byte.
    pub ns_per_mib: u64,
}

impl LinearCost {
    /// Nanoseconds for `bytes`, rounded down and saturating.
    #[must_use]
    pub fn ns(&self, bytes: u64) -> u64 {
        let variable = u128::from(bytes) * u128::from(self.ns_per_mib) / MIB;
        self.base_ns.saturating_add(clamp(variable))
    }
}

/// Nanoseconds for `bytes` at a rate. A rate of 0 means that bytes are free.
pub(crate) fn ns_at_rate(bytes: u64, bytes_per_s: u64) -> u64 {
    let ns = (u128::from(bytes) * NS_PER_S).checked_div(u128::from(bytes_per_s));
    ns.map_or(0, clamp)
}

pub(crate) fn clamp(ns: u128) -> u64 {
    u64::try_from(ns).unwrap_or(u64::MAX)
}

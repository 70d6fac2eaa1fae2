//! Fits curves to measured times.

use pinlane_model::{CostCurve, LinearCost};

const NS_PER_S: u128 = 1_000_000_000;

/// The curve through the times of copies, sorted by size. The first two give the cost of an empty copy, the
/// last two the rate beyond them.
pub(super) fn curve(times: &[(usize, u64)]) -> CostCurve {
    let [(small, small_ns), (next, next_ns), ..] = times else {
        unreachable!("at least two sizes are measured")
    };
    let [.., (before, before_ns), (large, large_ns)] = times else {
        unreachable!("as above")
    };
    let slope_ns = next_ns.saturating_sub(*small_ns) as u128;
    let down_ns = slope_ns * *small as u128 / (next - small) as u128;
    let latency_ns = small_ns.saturating_sub(down_ns as u64);
    let mut knots: Vec<[u64; 2]> = Vec::with_capacity(times.len());
    let mut last_ns = latency_ns;
    for &(bytes, ns) in times {
        // Noise must not make a larger copy cheaper.
        last_ns = last_ns.max(ns);
        knots.push([bytes as u64, last_ns]);
    }
    CostCurve {
        latency_ns,
        bytes_per_s: rate(large - before, large_ns.saturating_sub(*before_ns)),
        knots,
    }
}

/// Bytes per second; 0 means "takes no time".
pub(super) fn rate(bytes: usize, ns: u64) -> u64 {
    match ns {
        0 => 0,
        _ => u64::try_from(bytes as u128 * NS_PER_S / u128::from(ns)).unwrap_or(u64::MAX),
    }
}

/// The line through two areas.
pub(super) fn area((small, small_ns): (usize, u64), (large, large_ns): (usize, u64)) -> LinearCost {
    let mib = ((large - small) >> 20).max(1) as u64;
    let ns_per_mib = large_ns.saturating_sub(small_ns) / mib;
    let within_ns = ns_per_mib.saturating_mul(small as u64) >> 20;
    LinearCost {
        base_ns: small_ns.saturating_sub(within_ns),
        ns_per_mib,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line_is_found_again() {
        let line = CostCurve::straight(2_500, 10_000_000_000);
        let sizes = [4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20];
        let times: Vec<_> = sizes.iter().map(|&b| (b, line.ns(b as u64))).collect();
        let found = curve(&times);
        for bytes in [0, 1000, 100_000, 5_000_000, 1 << 30] {
            let (found, must) = (found.ns(bytes), line.ns(bytes));
            assert!(
                found.abs_diff(must) <= 2 + must / 1_000_000,
                "{bytes}: {found} for {must}"
            );
        }
    }

    #[test]
    fn noise_does_not_bend_a_curve_down() {
        let found = curve(&[(100, 50), (200, 40), (300, 45), (400, 90)]);
        assert!(found.knots.windows(2).all(|pair| pair[0][1] <= pair[1][1]));
    }

    #[test]
    fn areas() {
        let found = area((1 << 20, 1_500), (65 << 20, 65_500));
        assert_eq!((found.base_ns, found.ns_per_mib), (500, 1000));
    }
}

//! TimeTicks of a time axis.

/// Units of time: nanoseconds, decimal digits, name.
const UNITS: [(u64, u32, &str); 4] = [
    (1_000_000_000, 9, "s"),
    (1_000_000, 6, "ms"),
    (1_000, 3, "µs"),
    (1, 0, "ns"),
];

/// A tick with its label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TimeTick {
    pub(crate) at_ns: u64,
    pub(crate) label: String,
}

/// Ticks at round times from 0 to `span_ns`, about `most` of them, all in one unit.
pub(crate) fn time_ticks(span_ns: u64, most: usize) -> Vec<TimeTick> {
    let step_ns = round_step(span_ns, most);
    let fits = |(unit_ns, ..): &&(u64, u32, &str)| span_ns >= *unit_ns;
    let (unit_ns, unit_digits, unit) = *UNITS.iter().find(fits).unwrap_or(&UNITS[3]);
    // A step is 1, 2 or 5 times a power of ten.
    let decimals = unit_digits.saturating_sub(step_ns.ilog10()) as usize;
    let tick = |index: u128| {
        let at_ns = u64::try_from(index * step_ns).expect("at most span_ns");
        let label = match at_ns {
            0 => "0".to_owned(),
            _ => format!("{:.decimals$} {unit}", at_ns as f64 / unit_ns as f64),
        };
        TimeTick { at_ns, label }
    };
    (0..=u128::from(span_ns) / step_ns).map(tick).collect()
}

/// The smallest of 1, 2, 5, 10, 20, … that divides the span into at most `most` parts.
fn round_step(span_ns: u64, most: usize) -> u128 {
    let most = most.max(1) as u128;
    let mut decade = 1u128;
    loop {
        for factor in [1, 2, 5] {
            let step_ns = factor * decade;
            if step_ns * most >= u128::from(span_ns) {
                return step_ns;
            }
        }
        decade *= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(span_ns: u64, most: usize) -> Vec<String> {
        time_ticks(span_ns, most)
            .into_iter()
            .map(|tick| tick.label)
            .collect()
    }

    #[test]
    fn ticks_are_round_and_in_the_unit_of_the_span() {
        assert_eq!(
            labels(24_500_000, 6),
            ["0", "5 ms", "10 ms", "15 ms", "20 ms"]
        );
        assert_eq!(labels(1_200, 4), ["0", "0.5 µs", "1.0 µs"]);
        assert_eq!(labels(999, 3), ["0", "500 ns"]);
        assert_eq!(labels(1_000_000_000, 4), ["0", "0.5 s", "1.0 s"]);
        assert_eq!(labels(3, 10), ["0", "1 ns", "2 ns", "3 ns"]);
    }

    #[test]
    fn no_span_is_too_short_or_too_long() {
        assert_eq!(labels(0, 5), ["0"]);
        assert_eq!(labels(u64::MAX, 2), ["0", "10000000000 s"]);
        assert_eq!(labels(7, 0), ["0"]);
    }
}

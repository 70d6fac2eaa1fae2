//! The time axis.

/// Units of time: nanoseconds in one, and its digits behind the point.
const UNITS: [(u64, u32, &str); 4] = [
    (1_000_000_000, 9, "s"),
    (1_000_000, 6, "ms"),
    (1_000, 3, "µs"),
    (1, 0, "ns"),
];

/// A mark of the axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tick {
    pub(crate) at_ns: u64,
    pub(crate) label: String,
}

/// Marks at round times from 0 to `span_ns`, not many more than `most`, all in one unit.
pub(crate) fn ticks(span_ns: u64, most: usize) -> Vec<Tick> {
    let step_ns = round_step(span_ns, most);
    let (unit_ns, unit_digits, unit) = unit_of(span_ns);
    let decimals = unit_digits.saturating_sub(zeros(step_ns));
    (0..=u128::from(span_ns) / step_ns)
        .map(|index| {
            let at_ns = u64::try_from(index * step_ns).expect("within a span that fits");
            let whole = at_ns / unit_ns;
            let label = if at_ns == 0 {
                "0".to_owned()
            } else if decimals == 0 {
                format!("{whole} {unit}")
            } else {
                let rest = at_ns % unit_ns / 10u64.pow(unit_digits - decimals);
                format!("{whole}.{rest:0width$} {unit}", width = decimals as usize)
            };
            Tick { at_ns, label }
        })
        .collect()
}

/// The smallest of 1, 2, 5, 10, 20, … that cuts the span into at most `most` parts.
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

fn unit_of(span_ns: u64) -> (u64, u32, &'static str) {
    *UNITS
        .iter()
        .find(|(unit_ns, ..)| span_ns >= *unit_ns)
        .unwrap_or(&UNITS[3])
}

/// Zeros at the end of a step.
fn zeros(step_ns: u128) -> u32 {
    let mut step_ns = step_ns;
    let mut count = 0;
    while step_ns >= 10 && step_ns.is_multiple_of(10) {
        step_ns /= 10;
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(span_ns: u64, most: usize) -> Vec<String> {
        ticks(span_ns, most)
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

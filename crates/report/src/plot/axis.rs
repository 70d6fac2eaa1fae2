//! Axes: where values are drawn, and their ticks.

use crate::format::short_size;

/// How values map to positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scale {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are equally far apart.
    Log,
}

/// A position with its label.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct AxisTick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

impl AxisTick {
    fn new(at: f64, label: String) -> Self {
        Self { at, label }
    }
}

/// One dimension of a plot.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Axis {
    from: f64,
    to: f64,
    scale: Scale,
    pub(crate) ticks: Vec<AxisTick>,
}

impl Axis {
    fn new(scale: Scale, from: f64, to: f64, ticks: impl Iterator<Item = AxisTick>) -> Self {
        Self {
            from,
            to,
            scale,
            ticks: ticks.collect(),
        }
    }

    /// Sizes in bytes, by powers of two, with at most about `most` ticks.
    pub(crate) fn sizes(smallest: u64, largest: u64, most: usize) -> Self {
        let (mut from, mut to) = (smallest.max(1) as f64, largest.max(1) as f64);
        if to < from * 4.0 {
            // At least two octaves, so that there are ticks.
            let middle = (from * to).sqrt();
            (from, to) = (middle / 2.0, middle * 2.0);
        }
        let within = |step: u32| {
            (0..64u32)
                .step_by(step as usize)
                .map(|power| (power, 2f64.powi(power as i32)))
                .filter(move |(_, at)| (from..=to).contains(at))
        };
        let step = [1, 2, 4, 10, 20, 40]
            .into_iter()
            .find(|step| within(*step).count() <= most.max(1))
            .unwrap_or(40);
        let ticks = within(step).map(|(power, at)| AxisTick::new(at, short_size(1 << power)));
        Self::new(Scale::Log, from, to, ticks)
    }

    /// Numbers from 0 to a round one that is at least `top`.
    pub(crate) fn numbers(top: f64, most: usize) -> Self {
        let top = usable(top).unwrap_or(1.0);
        let step = round_step(top / most.max(1) as f64);
        let count = (top / step - 1e-9).ceil().max(1.0);
        let ticks = (0..=count as u32).map(|index| {
            let at = f64::from(index) * step;
            AxisTick::new(at, number(at, step))
        });
        Self::new(Scale::Linear, 0.0, count * step, ticks)
    }

    /// Numbers on a logarithmic scale, between round ones that enclose `bottom` and `top`.
    pub(crate) fn factors(bottom: f64, top: f64, most: usize) -> Self {
        let top = usable(top).unwrap_or(1.0);
        let bottom = usable(bottom).map_or(top, |bottom| bottom.min(top));
        let to = round_step(top);
        let mut rounds = vec![to];
        // Down to the first that is not above the bottom; at least one step.
        while let Some(last) = rounds
            .last()
            .filter(|last| **last > bottom || rounds.len() < 2)
        {
            rounds.push(round_step(last / 2.6));
        }
        rounds.reverse();
        let tick = |at: f64| AxisTick::new(at, number(at, at));
        let (from, count) = (rounds[0], rounds.len());
        let shown: Vec<f64> = match count <= most {
            true => rounds,
            // Powers of ten only, and fewer of them if there are many.
            false => {
                let is_ten = |at: &f64| (at.log10() - at.log10().round()).abs() < 1e-6;
                let tens: Vec<f64> = rounds.into_iter().filter(is_ten).collect();
                let step = tens.len().div_ceil(most.max(1)).max(1);
                tens.into_iter().step_by(step).collect()
            }
        };
        Self::new(Scale::Log, from, to, shown.into_iter().map(tick))
    }

    /// Times from 0 to `top_ns`.
    pub(crate) fn times(top_ns: u64, most: usize) -> Self {
        let ticks = time_ticks(top_ns.max(1), most).into_iter();
        let ticks = ticks.map(|tick| AxisTick::new(tick.at_ns as f64, tick.label));
        Self::new(Scale::Linear, 0.0, top_ns.max(1) as f64, ticks)
    }

    /// Position of a value, from 0 at the start to 1 at the end; clamped to that range.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Log => (value / self.from).ln() / (self.to / self.from).ln(),
        };
        if share.is_nan() {
            return 0.0;
        }
        share.clamp(0.0, 1.0)
    }
}

/// The value if it is positive and finite.
fn usable(value: f64) -> Option<f64> {
    (value.is_finite() && value > 0.0).then_some(value)
}

/// The smallest of 1, 2, 5, times a power of ten, that is at least `least`.
fn round_step(least: f64) -> f64 {
    let decade = 10f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * decade);
    let found = step.into_iter().find(|step| *step >= least * (1.0 - 1e-9));
    found.unwrap_or(10.0 * decade)
}

/// A number with the decimals of a step.
fn number(value: f64, step: f64) -> String {
    if value >= 1e6 || (value != 0.0 && step < 1e-4) {
        return format!("{value:.0e}");
    }
    let decimals = (-step.log10() - 1e-9).ceil().max(0.0) as usize;
    format!("{value:.decimals$}")
}

/// A round time with its label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TimeTick {
    pub(crate) at_ns: u64,
    pub(crate) label: String,
}

/// Ticks at round times from 0 to `span_ns`, about `most` of them, all in one unit.
pub(crate) fn time_ticks(span_ns: u64, most: usize) -> Vec<TimeTick> {
    let step_ns = round_step_ns(span_ns, most);
    let (unit_digits, unit) = match span_ns {
        1_000_000_000.. => (9u32, "s"),
        1_000_000.. => (6, "ms"),
        1_000.. => (3, "µs"),
        _ => (0, "ns"),
    };
    let unit_ns = 10f64.powi(unit_digits as i32);
    // A step is 1, 2 or 5 times a power of ten.
    let decimals = unit_digits.saturating_sub(step_ns.ilog10()) as usize;
    let tick = |index: u128| {
        let at_ns = u64::try_from(index * step_ns).expect("at most span_ns");
        let label = match at_ns {
            0 => "0".to_owned(),
            _ => format!("{:.decimals$} {unit}", at_ns as f64 / unit_ns),
        };
        TimeTick { at_ns, label }
    };
    (0..=u128::from(span_ns) / step_ns).map(tick).collect()
}

/// The smallest of 1, 2, 5, 10, 20, … that divides the span into at most `most` parts.
fn round_step_ns(span_ns: u64, most: usize) -> u128 {
    let decades = (0..).map(|digits| 10u128.pow(digits));
    let mut steps = decades.flat_map(|decade| [decade, 2 * decade, 5 * decade]);
    let fits = |step_ns: &u128| step_ns * most.max(1) as u128 >= u128::from(span_ns);
    steps.find(fits).expect("steps grow past any span")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn sizes_are_marked_by_round_powers() {
        let sweep = Axis::sizes(4 << 10, 256 << 20, 6);
        let marks = ["4 KiB", "64 KiB", "1 MiB", "16 MiB", "256 MiB"];
        assert_eq!(labels(&sweep), marks);
        let sizes = [4096.0, 1_048_576.0, 268_435_456.0];
        assert_eq!(sizes.map(|size| sweep.share(size)), [0.0, 0.5, 1.0]);
        let all = Axis::sizes(1, u64::MAX, 8);
        assert_eq!(labels(&all)[..3], ["1 B", "1 KiB", "1 MiB"]);
        assert!(all.ticks.len() <= 8);
    }

    #[test]
    fn one_size_has_marks_around_it() {
        for bytes in [0, 1, 5000, 1 << 20, u64::MAX] {
            let axis = Axis::sizes(bytes, bytes, 5);
            assert!(!axis.ticks.is_empty(), "{bytes}");
            assert!((axis.share(bytes.max(1) as f64) - 0.5).abs() < 1e-9);
        }
        assert_eq!(labels(&Axis::sizes(4097, 8191, 5)), ["4 KiB", "8 KiB"]);
    }

    #[test]
    fn numbers_end_at_a_round_one() {
        let tens = ["0", "10", "20", "30", "40", "50", "60"];
        assert_eq!(labels(&Axis::numbers(55.4, 6)), tens);
        let tenths = ["0.0", "0.1", "0.2", "0.3"];
        assert_eq!(labels(&Axis::numbers(0.23, 3)), tenths);
        assert_eq!(labels(&Axis::numbers(f64::NAN, 2)), ["0.0", "0.5", "1.0"]);
        assert!(Axis::numbers(1e300, 5).ticks.len() < 9);
    }

    #[test]
    fn factors_hold_all_values() {
        let axis = Axis::factors(0.34, 55.4, 10);
        let round = ["0.2", "0.5", "1", "2", "5", "10", "20", "50", "100"];
        assert_eq!(labels(&axis), round);
        assert_eq!((axis.share(0.2), axis.share(100.0)), (0.0, 1.0));
        assert_eq!(axis.share(0.0), 0.0);
        assert_eq!(labels(&Axis::factors(0.34, 55.4, 4)), ["1", "10", "100"]);
        assert_eq!(labels(&Axis::factors(0.0, 0.0, 3)), ["0.5", "1"]);
        assert!(Axis::factors(1e-300, 1e300, 6).ticks.len() <= 6);
    }

    #[test]
    fn time_ticks_are_round_and_in_the_unit_of_the_span() {
        for (span_ns, most, labels) in [
            (24_500_000, 6, "0, 5 ms, 10 ms, 15 ms, 20 ms"),
            (1_200, 4, "0, 0.5 µs, 1.0 µs"),
            (999, 3, "0, 500 ns"),
            (1_000_000_000, 4, "0, 0.5 s, 1.0 s"),
            (3, 10, "0, 1 ns, 2 ns, 3 ns"),
            (0, 5, "0"),
            (u64::MAX, 2, "0, 10000000000 s"),
            (7, 0, "0"),
        ] {
            let ticks = time_ticks(span_ns, most).into_iter();
            let found: Vec<String> = ticks.map(|tick| tick.label).collect();
            assert_eq!(found.join(", "), labels);
        }
    }
}

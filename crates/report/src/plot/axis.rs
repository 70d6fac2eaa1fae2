//! From values to places, and the marks that tell the values.

use crate::format::amount;
use crate::timeline::layout::scale;

/// How values are spread over an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scale {
    /// Equal steps are equally far apart.
    Linear,
    /// Equal factors are equally far apart.
    Log,
}

/// A mark of the axis.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// One direction of a plot.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Axis {
    from: f64,
    to: f64,
    scale: Scale,
    pub(crate) ticks: Vec<Tick>,
}

impl Axis {
    /// Sizes in bytes, by powers of two; at most about `most` marks.
    pub(crate) fn sizes(smallest: u64, largest: u64, most: usize) -> Self {
        let (mut from, mut to) = (smallest.max(1) as f64, largest.max(1) as f64);
        if to < from * 4.0 {
            // At least two octaves, so that there is a mark or two.
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
        let ticks = within(step).map(|(power, at)| Tick {
            at,
            label: amount(1 << power),
        });
        Self {
            from,
            to,
            scale: Scale::Log,
            ticks: ticks.collect(),
        }
    }

    /// Plain numbers from 0 to a round one that is not under `top`.
    pub(crate) fn numbers(top: f64, most: usize) -> Self {
        let top = if top > 0.0 && top.is_finite() {
            top
        } else {
            1.0
        };
        let step = round_step(top / most.max(1) as f64);
        let count = (top / step - 1e-9).ceil().max(1.0);
        let ticks = (0..=count as u32).map(|index| {
            let at = f64::from(index) * step;
            Tick {
                at,
                label: number(at, step),
            }
        });
        Self {
            from: 0.0,
            to: count * step,
            scale: Scale::Linear,
            ticks: ticks.collect(),
        }
    }

    /// Plain numbers of which equal factors are equally far apart, between round ones that hold both
    /// ends.
    pub(crate) fn factors(bottom: f64, top: f64, most: usize) -> Self {
        let usable = |value: f64| value.is_finite() && value > 0.0;
        let top = if usable(top) { top } else { 1.0 };
        let bottom = if usable(bottom) { bottom.min(top) } else { top };
        let to = round_step(top);
        let mut rounds = vec![to];
        // Down to the first that is not above the bottom, which is at least one step.
        while let Some(last) = rounds
            .last()
            .filter(|last| **last > bottom || rounds.len() < 2)
        {
            rounds.push(round_step(last / 2.6));
        }
        rounds.reverse();
        let tick = |at: f64| Tick {
            at,
            label: number(at, at),
        };
        let (from, count) = (rounds[0], rounds.len());
        let shown: Vec<f64> = match count <= most {
            true => rounds,
            // Powers of ten only, and not each of them where they are many.
            false => {
                let is_ten = |at: &f64| (at.log10() - at.log10().round()).abs() < 1e-6;
                let tens: Vec<f64> = rounds.into_iter().filter(is_ten).collect();
                let step = tens.len().div_ceil(most.max(1)).max(1);
                tens.into_iter().step_by(step).collect()
            }
        };
        Self {
            from,
            to,
            scale: Scale::Log,
            ticks: shown.into_iter().map(tick).collect(),
        }
    }

    /// Times from 0 to `top_ns`.
    pub(crate) fn times(top_ns: u64, most: usize) -> Self {
        let marks = scale::ticks(top_ns.max(1), most);
        let ticks = marks.into_iter().map(|tick| Tick {
            at: tick.at_ns as f64,
            label: tick.label,
        });
        Self {
            from: 0.0,
            to: top_ns.max(1) as f64,
            scale: Scale::Linear,
            ticks: ticks.collect(),
        }
    }

    /// Where a value is: 0 at the start, 1 at the end, and never beyond them.
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

/// The smallest of 1, 2, 5, 10, … and their tenths that is not under `least`.
fn round_step(least: f64) -> f64 {
    let decade = 10f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * decade);
    let found = step.into_iter().find(|step| *step >= least * (1.0 - 1e-9));
    found.unwrap_or(10.0 * decade)
}

/// A number with the digits that a step asks for.
fn number(value: f64, step: f64) -> String {
    if value >= 1e6 || (value != 0.0 && step < 1e-4) {
        return format!("{value:.0e}");
    }
    let decimals = (-step.log10() - 1e-9).ceil().max(0.0) as usize;
    format!("{value:.decimals$}")
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
        assert_eq!(
            (sweep.share(4096.0), sweep.share(268_435_456.0)),
            (0.0, 1.0)
        );
        assert_eq!(sweep.share((1u64 << 20) as f64), 0.5);
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
        assert_eq!(
            labels(&Axis::numbers(55.4, 6)),
            ["0", "10", "20", "30", "40", "50", "60"]
        );
        assert_eq!(
            labels(&Axis::numbers(0.23, 3)),
            ["0.0", "0.1", "0.2", "0.3"]
        );
        assert_eq!(labels(&Axis::numbers(f64::NAN, 2)), ["0.0", "0.5", "1.0"]);
        assert!(Axis::numbers(1e300, 5).ticks.len() < 9);
    }

    #[test]
    fn factors_hold_all_values() {
        let axis = Axis::factors(0.34, 55.4, 10);
        assert_eq!(
            labels(&axis),
            ["0.2", "0.5", "1", "2", "5", "10", "20", "50", "100"]
        );
        assert_eq!((axis.share(0.2), axis.share(100.0)), (0.0, 1.0));
        assert_eq!(axis.share(0.0), 0.0);
        assert_eq!(labels(&Axis::factors(0.34, 55.4, 4)), ["1", "10", "100"]);
        assert_eq!(labels(&Axis::factors(0.0, 0.0, 3)), ["0.5", "1"]);
        assert!(Axis::factors(1e-300, 1e300, 6).ticks.len() <= 6);
    }
}

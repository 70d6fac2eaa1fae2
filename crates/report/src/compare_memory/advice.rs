//! Advice from the figures.

use super::{Compare, CompareRow};
use crate::format::{duration, exact_size};
use crate::{MemoryKind, Route};

/// Smaller gains are not mentioned.
const GAIN_MIN: f64 = 1.05;

impl Compare {
    /// One or two sentences: whether pinning pays off, and what the express lane does without it.
    #[must_use]
    pub fn advice(&self) -> Vec<String> {
        let (Some(pageable), Some(pinned)) =
            (self.row(MemoryKind::Pageable), self.row(MemoryKind::Pinned))
        else {
            return Vec::new();
        };
        let mut advice = vec![self.on_pinning(pageable, pinned)];
        if let Some(express) = self.row(MemoryKind::Express) {
            advice.push(on_express(pageable, pinned, express));
        }
        advice
    }

    /// Pinning costs once; every copy saves some of it.
    fn on_pinning(&self, pageable: &CompareRow, pinned: &CompareRow) -> String {
        let Some((route, direction)) = gain(pageable, pinned) else {
            let as_fast = match gain(pinned, pageable) {
                None => "as fast",
                Some(_) => "as fast or faster",
            };
            return format!("Pinning gains nothing here: pageable copies are {as_fast}.");
        };
        let bytes = exact_size(self.bytes);
        let cost_ns = pinned.get_ns.saturating_sub(pageable.get_ns);
        let (slow, fast) = (pageable.stats(route), pinned.stats(route));
        let saved_ns = slow.median_ns.saturating_sub(fast.median_ns);
        let saved = duration(saved_ns);
        if cost_ns == 0 {
            return format!(
                "Pinned memory of {bytes} costs no more than pageable memory and saves {saved} per copy \
                 {direction}."
            );
        }
        let pays = match cost_ns.div_ceil(saved_ns.max(1)) {
            0 | 1 => "it pays off with the first copy".to_owned(),
            copies => format!("it pays off after {copies} copies of this size"),
        };
        let cost = duration(cost_ns);
        format!("Pinning {bytes} costs {cost} and saves {saved} per copy {direction}: {pays}.")
    }
}

fn on_express(pageable: &CompareRow, pinned: &CompareRow, express: &CompareRow) -> String {
    let Some((route, direction)) = gain(pageable, express) else {
        return "The express lane gains nothing for copies of this size.".to_owned();
    };
    let share = express.stats(route).gb_per_s / pinned.stats(route).gb_per_s * 100.0;
    let only = match route {
        Route::H2d => String::new(),
        _ => format!(" for copies {direction}"),
    };
    format!(
        "The express lane reaches {share:.0}% of pinned speed without pinning{only}: best for memory that \
         is rarely copied."
    )
}

/// The first direction in which `fast` is noticeably faster, with its words.
fn gain(slow: &CompareRow, fast: &CompareRow) -> Option<(Route, &'static str)> {
    let directions = [
        (Route::H2d, "to the device"),
        (Route::D2h, "from the device"),
    ];
    directions
        .into_iter()
        .find(|(route, _)| fast.stats(*route).gb_per_s >= slow.stats(*route).gb_per_s * GAIN_MIN)
}

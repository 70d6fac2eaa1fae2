//! What follows from the figures.

use super::{Compare, Row};
use crate::format::size;
use crate::timeline::layout::words::duration;
use crate::{MemoryKind, Route};

/// Less than this is no gain worth a word.
const GAIN: f64 = 1.05;

impl Compare {
    /// One or two sentences: whether pinning pays, and what the express lane does without.
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

    /// Pinning has a price, and every copy gives some of it back.
    fn on_pinning(&self, pageable: &Row, pinned: &Row) -> String {
        let Some((route, where_to)) = gain(pageable, pinned) else {
            let as_fast = match gain(pinned, pageable) {
                None => "as fast",
                Some(_) => "as fast or faster",
            };
            return format!("Pinning gains nothing here: copies of pageable memory are {as_fast}.");
        };
        let bytes = size(self.bytes);
        let cost_ns = pinned.get_ns.saturating_sub(pageable.get_ns);
        let (slow, fast) = (pageable.figure(route), pinned.figure(route));
        let saved_ns = slow.median_ns.saturating_sub(fast.median_ns);
        let saved = duration(saved_ns);
        if cost_ns == 0 {
            return format!(
                "Pinned memory of {bytes} costs no more than pageable memory, and saves {saved} a \
                 copy {where_to}."
            );
        }
        let pays = match cost_ns.div_ceil(saved_ns.max(1)) {
            0 | 1 => "it pays from the first copy".to_owned(),
            copies => format!("it pays after {copies} copies of this size"),
        };
        let cost = duration(cost_ns);
        format!("Pinning {bytes} costs {cost} and saves {saved} a copy {where_to}: {pays}.")
    }
}

fn on_express(pageable: &Row, pinned: &Row, express: &Row) -> String {
    let Some((route, where_to)) = gain(pageable, express) else {
        return "The express lane is of no use for copies of this size.".to_owned();
    };
    let share = express.figure(route).gb_per_s / pinned.figure(route).gb_per_s * 100.0;
    let only = match route {
        Route::H2d => String::new(),
        _ => format!(" in copies {where_to}"),
    };
    format!(
        "The express lane reaches {share:.0}% of pinned speed with no pinning{only}: right for memory \
         that is copied seldom."
    )
}

/// The direction in which one kind is faster than another by more than a word, in words too: to the
/// device, or else from it.
fn gain(slow: &Row, fast: &Row) -> Option<(Route, &'static str)> {
    let ways = [
        (Route::H2d, "to the device"),
        (Route::D2h, "from the device"),
    ];
    ways.into_iter()
        .find(|(route, _)| fast.figure(*route).gb_per_s >= slow.figure(*route).gb_per_s * GAIN)
}

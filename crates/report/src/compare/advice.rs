//! What follows from the figures.

use super::{Compare, Row};
use crate::MemoryKind;
use crate::format::size;
use crate::timeline::layout::words::duration;

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
        if pinned.h2d.gb_per_s < pageable.h2d.gb_per_s * GAIN {
            return "Pinning gains nothing here: copies of pageable memory are as fast.".to_owned();
        }
        let bytes = size(self.bytes);
        let cost_ns = pinned.get_ns.saturating_sub(pageable.get_ns);
        let saved_ns = pageable.h2d.median_ns.saturating_sub(pinned.h2d.median_ns);
        let saved = duration(saved_ns);
        if cost_ns == 0 {
            return format!(
                "Pinned memory of {bytes} costs no more than pageable memory, and saves {saved} a \
                 copy to the device."
            );
        }
        let pays = match cost_ns.div_ceil(saved_ns.max(1)) {
            0 | 1 => "it pays from the first copy".to_owned(),
            copies => format!("it pays after {copies} copies of this size"),
        };
        let cost = duration(cost_ns);
        format!("Pinning {bytes} costs {cost} and saves {saved} a copy to the device: {pays}.")
    }
}

fn on_express(pageable: &Row, pinned: &Row, express: &Row) -> String {
    let rate = express.h2d.gb_per_s;
    if rate < pageable.h2d.gb_per_s * GAIN {
        return "The express lane is of no use for copies of this size.".to_owned();
    }
    let share = rate / pinned.h2d.gb_per_s * 100.0;
    format!(
        "The express lane reaches {share:.0}% of pinned speed with no pinning: right for memory \
         that is copied seldom."
    )
}

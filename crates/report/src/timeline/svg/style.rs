//! Colours of the page, for both looks.

use std::fmt::Write;

use crate::plot::style::{DARK_RULES, RULES};
use crate::timeline::layout::palette::colour;
use crate::timeline::layout::shade::Shade;
use crate::timeline::{Chart, SpanKind};

/// The class of a bar.
pub(super) fn class(kind: SpanKind, shade: Shade) -> String {
    let letter = match shade {
        Shade::Strong => 'a',
        Shade::Soft => 'b',
    };
    format!("{letter}{}", kind as usize)
}

/// The style sheet; only with the kinds that occur.
pub(super) fn sheet(chart: &Chart) -> String {
    let mut sheet = RULES.to_owned();
    let mut inks = String::new();
    for kind in chart.kinds() {
        for shade in [Shade::Strong, Shade::Soft] {
            let fill = colour(kind, shade);
            let class = class(kind, shade);
            let _ = writeln!(sheet, ".{class}{{fill:{}}}", fill.hex());
            let _ = writeln!(inks, "text.i{class}{{fill:{}}}", fill.ink().hex());
        }
    }
    format!("{sheet}@media (prefers-color-scheme:dark){{\n{DARK_RULES}}}\n{inks}")
}

//! CSS of plots, for light and dark themes.

use std::fmt::Write;

use super::series_style::SeriesStyle;
use crate::colour::Colour;

/// Plain rules first, for viewers without themes or variables.
pub(crate) const RULES: &str = include_str!("base.css");

/// Overrides of the dark theme.
pub(crate) const DARK_RULES: &str = include_str!("base-dark.css");

/// Lines, markers and bars, in addition to [`RULES`].
const PLOT_RULES: &str = include_str!("plots.css");

const DARK_PLOT_RULES: &str = include_str!("plots-dark.css");

/// The style sheet of plots, for standalone pictures and for pages.
pub(crate) fn stylesheet() -> String {
    let mut sheet = format!("{RULES}{PLOT_RULES}");
    let mut dark = format!("{DARK_RULES}{DARK_PLOT_RULES}");
    for series in SeriesStyle::ALL {
        let [on_white, on_black] = series.colours();
        let (class, dashes) = (series.class(), series.dashes());
        push_series(class, on_white, on_white.soft(), &mut sheet);
        push_series(class, on_black, on_black.muted(), &mut dark);
        let _ = writeln!(sheet, ".l{class}{{stroke-dasharray:{dashes}}}");
    }
    sheet.push_str(".noisy{fill:none;stroke-width:1.5;stroke-dasharray:none}\n");
    format!("{sheet}@media (prefers-color-scheme:dark){{\n{dark}}}\n")
}

/// Lines, fills in both shades, and text on them. `color` is for the swatches of pages.
fn push_series(class: &str, strong: Colour, soft: Colour, sheet: &mut String) {
    let _ = writeln!(
        sheet,
        ".{class}{{fill:{strong};color:{strong}}}.l{class}{{stroke:{strong}}}.s{class}{{fill:{soft};color:{soft}}}\
         .in{class}{{fill:{}}}.ins{class}{{fill:{}}}",
        strong.ink().hex(),
        soft.ink().hex(),
        strong = strong.hex(),
        soft = soft.hex(),
    );
}

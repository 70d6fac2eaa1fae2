//! Colours of pictures, for both looks.

use std::fmt::Write;

use super::hue::Hue;
use crate::colour::Colour;

/// Plain rules first, for viewers that know neither looks nor variables.
pub(crate) const RULES: &str = "\
text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','DejaVu Sans',sans-serif;\
font-size:13px;fill:#1b1f24}
.title{font-size:20px;font-weight:600}
.name{font-size:14px;font-weight:600}
.dim{fill:#57606a}
.small{font-size:11px}
.flag{fill:#fff3d6;stroke:#b7791f}
.end{text-anchor:end}
.mid{text-anchor:middle}
.page{fill:#fff}
.strip{fill:#eef1f4}
.grid{stroke:#d5dae0}
.rule{stroke:#c3c9d1}
";

/// What is different in the dark.
pub(crate) const DARK_RULES: &str = "\
text{fill:#e8eaed}
.dim{fill:#a6adb7}
.flag{fill:#3a2c0c;stroke:#e0a93b}
.page{fill:#14171b}
.strip{fill:#20252b}
.grid{stroke:#343b44}
.rule{stroke:#4a525c}
";

/// Lines, marks and bars on top of [`RULES`].
const PLOT_RULES: &str = "\
.head{font-size:15px;font-weight:600}
.fig{font-weight:600}
.line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:butt}
.band{opacity:.16;stroke:none}
.mark{stroke:#fff;stroke-width:1}
.halo{paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}
.lead{fill:none;stroke-width:1;opacity:.7}
.limit{fill:none;stroke:#1b1f24;stroke-width:1.5;stroke-dasharray:5 4}
.hit{fill:none;pointer-events:all}
.cursor{stroke:#57606a;visibility:hidden}
.on .cursor{visibility:visible}
.on .bar{stroke:#1b1f24;stroke-width:1.5}
";

const DARK_PLOT_RULES: &str = "\
.mark,.halo{stroke:#14171b}
.limit,.on .bar{stroke:#e8eaed}
.cursor{stroke:#a6adb7}
";

/// The style sheet of plots, for pictures that stand alone and for pages.
pub(crate) fn sheet() -> String {
    let mut sheet = format!("{RULES}{PLOT_RULES}");
    let mut dark = format!("{DARK_RULES}{DARK_PLOT_RULES}");
    for hue in Hue::ALL {
        let [on_white, on_black] = hue.colours();
        push_hue(hue.class(), on_white, on_white.soft(), &mut sheet);
        push_hue(hue.class(), on_black, on_black.muted(), &mut dark);
        let _ = writeln!(
            sheet,
            ".l{}{{stroke-dasharray:{}}}",
            hue.class(),
            hue.dashes()
        );
    }
    sheet.push_str(".noisy{fill:none;stroke-width:1.5;stroke-dasharray:none}\n");
    format!("{sheet}@media (prefers-color-scheme:dark){{\n{dark}}}\n")
}

/// Fills, both shades and what is written on them, and lines. `color` is for the small boxes of pages.
fn push_hue(class: &str, strong: Colour, soft: Colour, sheet: &mut String) {
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

//! Colours of the page, for both looks.

use std::fmt::Write;

use crate::timeline::layout::palette::colour;
use crate::timeline::layout::shade::Shade;
use crate::timeline::{Chart, SpanKind};

/// Plain rules first, for viewers that know neither looks nor variables.
const RULES: &str = "\
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

const DARK_RULES: &str = "\
text{fill:#e8eaed}
.dim{fill:#a6adb7}
.flag{fill:#3a2c0c;stroke:#e0a93b}
.page{fill:#14171b}
.strip{fill:#20252b}
.grid{stroke:#343b44}
.rule{stroke:#4a525c}
";

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

//! Charts on the terminal and in files.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write, stdout};
use std::path::Path;

use anyhow::Context;
use pinlane_report::timeline::{Chart, Exporter, Text};

/// Columns where nobody tells.
const WIDTH: usize = 100;

/// The chart as text, as wide as the terminal says, in colours where they are wanted.
pub(crate) fn text(chart: &Chart) -> String {
    let columns = std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok());
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let text = Text {
        width: columns.unwrap_or(WIDTH),
        colour: stdout().is_terminal() && !plain,
        ascii: false,
    };
    let mut bytes = Vec::new();
    text.export(chart, &mut bytes)
        .expect("memory takes everything");
    String::from_utf8(bytes).expect("text is UTF-8")
}

/// Write the chart to a file, if one is named.
pub(crate) fn write(
    path: Option<&Path>,
    exporter: &dyn Exporter,
    chart: &Chart,
) -> anyhow::Result<()> {
    let Some(path) = path else {
        return Ok(());
    };
    let context = || format!("{} cannot be written", path.display());
    let mut file = BufWriter::new(File::create(path).with_context(context)?);
    exporter.export(chart, &mut file).with_context(context)?;
    file.flush().with_context(context)
}

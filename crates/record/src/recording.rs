//! What was recorded, as data and as pictures.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use pinlane_core::DeviceInfo;
use pinlane_report::Origin;
use pinlane_report::timeline::{Chart, Exporter, Html, Span, Svg, Text, Timeline, Trace};

/// What ran when. `Display` draws it for a terminal.
#[derive(Clone, Debug)]
pub struct Recording {
    chart: Chart,
}

impl Recording {
    pub(crate) fn new(title: &str, device: &DeviceInfo, spans: Vec<Span>) -> Self {
        let total_ns = spans.iter().map(|span| span.end_ns).max().unwrap_or(0);
        let timeline = Timeline::new(title, total_ns, spans).expect("spans end after they start");
        let origin = Origin::new(device.name.clone(), device.simulated.clone());
        Self {
            chart: Chart::new(title, origin, vec![timeline]),
        }
    }

    /// The spans of all work, with their engine, stream, label, bytes and times.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        &self.chart.timelines[0]
    }

    /// Writes it to a file in the format of its extension: `.svg` for a picture, `.html` for a page to zoom,
    /// `.json` for a trace that Perfetto opens, `.txt` for what `Display` shows.
    ///
    /// # Errors
    /// If the extension is none of these, or the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let exporter: &dyn Exporter = match path.extension().and_then(|name| name.to_str()) {
            Some("svg") => &Svg,
            Some("html") => &Html,
            Some("json") => &Trace,
            Some("txt") => &Text::default(),
            _ => {
                let text = format!("{path:?} must end in .svg, .html, .json or .txt");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
        };
        let mut file = BufWriter::new(File::create(path)?);
        exporter.export(&self.chart, &mut file)?;
        file.flush()
    }
}

impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        let exported = Text::default().export(&self.chart, &mut text);
        exported.map_err(|_| fmt::Error)?;
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

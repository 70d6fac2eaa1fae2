//! The flags that write a chart to files.

use std::path::{Path, PathBuf};

use pinlane_report::timeline::{Chart, Exporter, Html, Svg, Trace};

use crate::output::UsageError;
use crate::output_file;

#[derive(clap::Args)]
pub(crate) struct ChartFiles {
    /// Write the chart as an SVG image
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    /// Write the chart as an interactive HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write the chart as a trace for Perfetto (ui.perfetto.dev) or chrome://tracing
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
}

impl ChartFiles {
    /// See [`output_file::check`].
    pub(crate) fn check<'a>(
        &self,
        inputs: impl IntoIterator<Item = &'a Path> + Clone,
    ) -> Result<(), UsageError> {
        let flags = [
            ("--svg", &self.svg),
            ("--html", &self.html),
            ("--trace", &self.trace),
        ];
        output_file::check(&flags, inputs)
    }

    pub(crate) fn write(&self, chart: &Chart) -> anyhow::Result<()> {
        let exporters: [&dyn Exporter; 3] = [&Svg, &Html, &Trace];
        for (path, exporter) in self.all().into_iter().zip(exporters) {
            if let Some(path) = path {
                output_file::write(path, |out| exporter.export(chart, out))?;
            }
        }
        Ok(())
    }

    pub(crate) fn all(&self) -> [&Option<PathBuf>; 3] {
        [&self.svg, &self.html, &self.trace]
    }
}

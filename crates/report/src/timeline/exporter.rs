//! What every format is.

use std::io;

use super::Chart;

/// A way to show a chart.
pub trait Exporter {
    /// Write the whole chart.
    ///
    /// # Errors
    ///
    /// Those of `out`. A chart itself can always be shown.
    fn export(&self, chart: &Chart, out: &mut dyn io::Write) -> io::Result<()>;
}

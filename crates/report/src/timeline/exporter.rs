//! What every output format of charts implements.

use std::io;

use super::Chart;

/// An output format of charts.
pub trait Exporter {
    /// Writes the whole chart.
    ///
    /// # Errors
    ///
    /// Only errors of `out`: every chart can be shown.
    fn export(&self, chart: &Chart, out: &mut dyn io::Write) -> io::Result<()>;
}

//! Reads a sweep of an earlier run. The file is untrusted.

use std::collections::HashSet;

use serde_json::Value;

use super::Bench;
use crate::{CopyStats, SCHEMA_VERSION};

/// Maximum number of figures of a report.
const FIGURES_MAX: usize = 100_000;

/// Why a text is not a sweep.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchReadError {
    /// It is not JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// It is JSON, but not from `pinlane --json bench`.
    #[error("not a report of `pinlane --json bench`: {0}")]
    Other(String),
    /// It has another schema version.
    #[error(
        "schema {found} is not supported (expected {SCHEMA_VERSION}); run `pinlane --json bench` again"
    )]
    Schema {
        /// The version in the report.
        found: String,
    },
    /// A figure is invalid.
    #[error("invalid figure: {0}")]
    Figure(String),
}

impl Bench {
    /// Parses the output of [`to_json`](Self::to_json).
    ///
    /// # Errors
    /// [`BenchReadError`] for anything else.
    pub fn from_json(text: &str) -> Result<Self, BenchReadError> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| BenchReadError::Json(error.to_string()))?;
        let schema = value.get("schema");
        let schema = schema
            .ok_or_else(|| BenchReadError::Other("the field `schema` is missing".to_owned()))?;
        if schema.as_u64() != Some(SCHEMA_VERSION.into()) {
            let found = schema.to_string();
            return Err(BenchReadError::Schema { found });
        }
        let bench: Self = serde_json::from_value(value)
            .map_err(|error| BenchReadError::Other(error.to_string()))?;
        bench.check()?;
        Ok(bench)
    }

    fn check(&self) -> Result<(), BenchReadError> {
        let refuse = |what: String| Err(BenchReadError::Figure(what));
        if self.lines.len().saturating_add(self.latencies.len()) > FIGURES_MAX {
            return refuse(format!("more than {FIGURES_MAX} figures"));
        }
        let mut seen = HashSet::new();
        for (list, point, stats, _) in self.figures() {
            let (memory, route) = (point.memory.name(), point.route.words());
            let name = format!("{memory}, {route}, {} bytes", point.bytes);
            if !seen.insert((list, point)) {
                return refuse(format!("{name} occurs twice"));
            }
            if point.bytes == 0 || !is_sound(&stats) {
                return refuse(name);
            }
        }
        Ok(())
    }
}

fn is_sound(stats: &CopyStats) -> bool {
    let times = [stats.best_ns, stats.p5_ns, stats.median_ns, stats.p95_ns];
    let rate = stats.gb_per_s;
    stats.samples > 0 && times[0] > 0 && times.is_sorted() && rate.is_finite() && rate > 0.0
}

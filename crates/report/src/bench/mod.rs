//! The sweep: sizes × kinds of memory × directions.

mod against;
mod csv;
mod html;
mod plots;
mod read;
mod svg;
mod text;

pub use against::{BenchAgainst, BenchChange, BenchPoint, BenchVerdict};
pub use read::BenchReadError;

use serde::{Deserialize, Serialize};

use crate::{Figure, MemoryKind, Origin, Route, SCHEMA_VERSION};

/// One combination, measured.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct BenchLine {
    /// The host's end.
    pub memory: MemoryKind,
    /// Which way.
    pub route: Route,
    /// Bytes of one copy, one way.
    pub bytes: u64,
    /// What it took.
    #[serde(flatten)]
    pub figure: Figure,
    /// The copies' times differ so much that the median says little.
    pub noisy: bool,
}

/// The smallest copy, which shows what a copy costs beside its bytes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct BenchLatency {
    /// The host's end.
    pub memory: MemoryKind,
    /// Which way.
    pub route: Route,
    /// Bytes of that copy.
    pub bytes: u64,
    /// What it took.
    #[serde(flatten)]
    pub figure: Figure,
}

/// A sweep over sizes, kinds of memory and directions.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Bench {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// The device.
    #[serde(flatten)]
    pub origin: Origin,
    /// When it began, such as `2026-11-15 10:20:35 UTC`. None on a simulated device, whose runs are
    /// all alike.
    pub began: Option<String>,
    /// Decides in which order the combinations were measured.
    pub seed: u64,
    /// Time that each combination had.
    pub budget_ns: u64,
    /// Whether all that was asked for was measured; false after an interruption.
    pub complete: bool,
    /// By kind, direction and size.
    pub lines: Vec<BenchLine>,
    /// By kind and direction.
    pub latencies: Vec<BenchLatency>,
    /// What the reader should know: kinds that this device does not offer, noise.
    pub notes: Vec<String>,
}

impl Bench {
    /// A sweep without lines.
    #[must_use]
    pub fn new(origin: Origin, began: Option<String>, seed: u64, budget_ns: u64) -> Self {
        Self {
            schema: SCHEMA_VERSION,
            origin,
            began,
            seed,
            budget_ns,
            complete: false,
            lines: Vec::new(),
            latencies: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Whether copies' times differ so much that the median says little: by more than a quarter of
    /// it, leaving the shortest and the longest twentieth aside.
    #[must_use]
    pub fn is_noisy(figure: &Figure) -> bool {
        text::spread_percent(figure) > 25.0
    }

    /// Add the figure of a combination. Lines stand by kind, direction and size.
    pub fn push(&mut self, memory: MemoryKind, route: Route, bytes: u64, figure: Figure) {
        let place = (memory, route, bytes);
        let at = self
            .lines
            .partition_point(|line| (line.memory, line.route, line.bytes) <= place);
        let noisy = Self::is_noisy(&figure);
        let line = BenchLine {
            memory,
            route,
            bytes,
            figure,
            noisy,
        };
        self.lines.insert(at, line);
    }

    /// Add the figure of the smallest copy. They stand by kind and direction.
    pub fn push_latency(&mut self, memory: MemoryKind, route: Route, bytes: u64, figure: Figure) {
        let at = self
            .latencies
            .partition_point(|line| (line.memory, line.route) <= (memory, route));
        let latency = BenchLatency {
            memory,
            route,
            bytes,
            figure,
        };
        self.latencies.insert(at, latency);
    }

    /// The report as JSON, over several lines, with a line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("plain data becomes JSON");
        json.push('\n');
        json
    }
}

//! Reports: measurements as data, and their presentation.
//!
//! A report becomes text or JSON, some also CSV, SVG or an HTML page. A [`timeline`] becomes a chart in
//! the terminal, an SVG, a page or a Perfetto trace.
//!
//! Data types do not know how they were measured, and the code that measures does not know how they
//! are shown, so a new format touches neither. Every report carries its [`Origin`], and each
//! presentation says SIMULATED if the device was simulated. JSON and pages also say in which
//! [`Environment`] they were made.
//!
//! Modules import only from lower layers:
//!
//! ```text
//!  bench boost calibration compare_memory doctor dot_product feed load overlap plan program_trace selftest    one per command
//!  timeline                                                              runs over time
//!  plot                                                                  SVG plots
//!  page                                                                  HTML pages
//!  markup                                                                HTML and SVG elements
//!  environment                                                           what made a report
//!  stats                                                                 medians and rates
//!  colour format text_layout versioned_json named_enum                   leaves
//!  measured_or_simulated memory_kinds_and_directions                     leaves
//! ```

#![forbid(unsafe_code)]

/// Adds `to_json` to reports.
macro_rules! impl_to_json {
    ($($report:ty),+ $(,)?) => {
        $(impl $report {
            /// The report as indented JSON, with a final newline.
            #[must_use]
            pub fn to_json(&self, environment: &Environment) -> String {
                versioned_json::versioned_json(self, environment)
            }
        })+
    };
}

#[macro_use]
mod named_enum;

mod bench;
mod boost;
mod calibration;
mod colour;
mod compare_memory;
mod doctor;
mod dot_product;
mod environment;
mod feed;
mod format;
mod load;
mod markup;
mod measured_or_simulated;
mod memory_kinds_and_directions;
mod overlap;
mod page;
mod plan;
mod plot;
mod program_trace;
mod selftest;
mod stats;
mod text_layout;
pub mod timeline;
mod versioned_json;

pub use bench::{
    Bench, BenchChange, BenchComparison, BenchLatency, BenchLine, BenchPoint, BenchReadError,
    BenchVerdict,
};
pub use boost::{Boost, BoostReason, BoostRow};
pub use calibration::{
    BothRates, Calibration, CalibrationFigures, ExpressFigures, FileFigures, PinningFigures,
};
pub use compare_memory::{Compare, CompareRow, LinkBasis, LinkLimit};
pub use doctor::{Doctor, DoctorCounts, DoctorFinding, DoctorGroup, DoctorStatus, DoctorStyle};
pub use dot_product::{Dot, DotJob, DotKernel, DotResult, DotTimes, DotTree, DotWay, DotWays};
pub use environment::Environment;
pub use feed::{
    Feed, FeedDone, FeedField, FeedHost, FeedInterval, FeedJob, FeedKernel, FeedLimit, FeedLink,
    FeedNormalize, FeedShard, FeedSkipped, FeedStage, FeedTarget,
};
pub use format::{duration, short_size};
pub use load::{
    Load, LoadConversion, LoadCopies, LoadHost, LoadJob, LoadLimitedBy, LoadList,
    LoadListConverted, LoadListTensor, LoadLocalRank, LoadMedian, LoadMemory, LoadRun, LoadShard,
    LoadSharing, LoadTimes, LoadVerify,
};
pub use measured_or_simulated::Origin;
pub use memory_kinds_and_directions::{MemoryKind, Route};
pub use overlap::Overlap;
pub use plan::{Plan, PlanAdvice, PlanAlternative, PlanBottleneck, PlanJob, PlanRun, PlanShape};
pub use program_trace::{ProgramTrace, TraceAction, TraceFinding, TraceSite};
pub use selftest::{Selftest, SelftestCase, SelftestVerdict};
pub use stats::CopyStats;
pub use text_layout::wrap_long_lines;
pub use versioned_json::SCHEMA_VERSION;

impl_to_json!(
    Bench,
    Boost,
    Calibration,
    Compare,
    Doctor,
    Dot,
    Feed,
    Load,
    LoadList,
    Overlap,
    Plan,
    ProgramTrace,
    Selftest,
);

//! Looks: what was measured, as data first, then as something to look at.
//!
//! Reports become text or JSON; a [`timeline`] becomes a chart in the terminal, a picture, a page or a
//! trace.
//!
//! The data types know nothing of how they came about, and the measuring knows nothing of how they
//! are shown, so that a new format touches neither. Every report carries its [`Origin`], and each
//! rendering says SIMULATED where a simulated device was at work.

#![forbid(unsafe_code)]

mod bench;
mod calibration;
mod colour;
mod compare;
mod doctor;
mod dot;
mod feed;
mod figure;
mod format;
mod load;
mod markup;
mod origin;
mod overlap;
mod page;
mod plan;
mod plot;
mod selftest;
pub mod timeline;

pub use bench::{
    Bench, BenchAgainst, BenchChange, BenchLatency, BenchLine, BenchPoint, BenchReadError,
    BenchVerdict,
};
pub use calibration::{
    BothRates, Calibration, CalibrationFigures, ExpressFigures, FileFigures, PinningFigures,
};
pub use compare::{Compare, LinkBasis, LinkLimit, Row};
pub use doctor::{Doctor, DoctorCounts, DoctorFinding, DoctorGroup, DoctorLook, DoctorStatus};
pub use dot::{Dot, DotJob, DotKernel, DotResult, DotTimes, DotTree, DotWay, DotWays};
pub use feed::{
    Feed, FeedAsked, FeedDone, FeedField, FeedHost, FeedJob, FeedKernel, FeedLimit, FeedLink,
    FeedNormalize, FeedShard, FeedSkipped, FeedStage,
};
pub use figure::{Figure, MemoryKind, Route};
pub use format::amount;
pub use load::{
    Load, LoadConversion, LoadCopies, LoadHost, LoadJob, LoadLimitedBy, LoadList,
    LoadListConverted, LoadListTensor, LoadMedian, LoadMemory, LoadRun, LoadShard, LoadTimes,
    LoadVerify,
};
pub use origin::Origin;
pub use overlap::Overlap;
pub use plan::{
    Plan, PlanAdvice, PlanAlternative, PlanBottleneck, PlanJob, PlanPart, PlanParts, PlanRun,
    PlanShape,
};
pub use selftest::{Selftest, SelftestCase, SelftestVerdict};

/// Version of the JSON that this crate writes. It grows when a field changes its meaning or goes;
/// a new field alone does not raise it.
pub const SCHEMA_VERSION: u32 = 1;

//! `doctor`: whether a machine is set up for fast transfers, one finding per check.

mod text;

pub use text::DoctorStyle;

use std::cmp::Reverse;

use serde::Serialize;

use crate::Origin;

named_enum! {
    /// Subject of a check. Reports show the groups in this order.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum DoctorGroup {
        /// The driver and the GPU.
        Gpu = "driver and GPU",
        /// The link between host and GPU.
        Link = "link",
        /// The host's memory.
        Memory = "memory",
        /// Limits of the process.
        Limits = "limits",
        /// The process, its settings, and other processes.
        Process = "process",
    }
}

named_enum! {
    /// Result of a check.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum DoctorStatus {
        /// Good.
        Ok = "ok",
        /// It works, but could be faster or larger.
        Warn = "warn",
        /// It does not work.
        Fail = "fail",
        /// It cannot be checked here.
        Skip = "skip",
    }
}

/// Finding of one check.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DoctorFinding {
    /// Subject.
    pub group: DoctorGroup,
    /// Name of the check, such as `link width`.
    pub check: String,
    /// Number of the GPU; `None` for the host.
    pub gpu: Option<u32>,
    /// Result.
    pub status: DoctorStatus,
    /// Observation.
    pub seen: String,
    /// What to do about it.
    pub remedy: Option<String>,
    /// Importance among findings of the same status, from 0 to 100.
    pub weight: u8,
    /// Whether the device is simulated.
    pub simulated: bool,
}

impl DoctorFinding {
    /// A finding without a remedy.
    #[must_use]
    pub fn new(
        group: DoctorGroup,
        check: impl Into<String>,
        status: DoctorStatus,
        seen: impl Into<String>,
    ) -> Self {
        Self {
            group,
            check: check.into(),
            gpu: None,
            status,
            seen: seen.into(),
            remedy: None,
            weight: 0,
            simulated: false,
        }
    }

    /// A good result.
    #[must_use]
    pub fn ok(group: DoctorGroup, check: &str, seen: impl Into<String>) -> Self {
        Self::new(group, check, DoctorStatus::Ok, seen)
    }

    /// It cannot be checked here.
    #[must_use]
    pub fn skip(group: DoctorGroup, check: &str, seen: impl Into<String>) -> Self {
        Self::new(group, check, DoctorStatus::Skip, seen)
    }

    /// It could be better; add a [`remedy`](Self::remedy).
    #[must_use]
    pub fn warn(group: DoctorGroup, check: &str, seen: impl Into<String>) -> Self {
        Self::new(group, check, DoctorStatus::Warn, seen)
    }

    /// It does not work; add a [`remedy`](Self::remedy).
    #[must_use]
    pub fn fail(group: DoctorGroup, check: &str, seen: impl Into<String>) -> Self {
        Self::new(group, check, DoctorStatus::Fail, seen)
    }

    /// Adds what to do about it, and its importance.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>, weight: u8) -> Self {
        self.remedy = Some(remedy.into());
        self.weight = weight;
        self
    }
}

/// Number of checks by status.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct DoctorCounts {
    /// Good.
    pub ok: usize,
    /// Could be better.
    pub warn: usize,
    /// Broken.
    pub fail: usize,
    /// Not checked.
    pub skip: usize,
}

/// The findings of a machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Doctor {
    /// The first device; `None` without a device.
    #[serde(flatten)]
    pub origin: Option<Origin>,
    /// Names of all devices.
    pub devices: Vec<String>,
    /// Number of checks by status.
    pub counts: DoctorCounts,
    /// What to do first, if anything.
    pub first: Option<String>,
    /// All checks, by group.
    pub findings: Vec<DoctorFinding>,
}

impl Doctor {
    /// A report of these findings, sorted by group.
    #[must_use]
    pub fn new(
        origin: Option<Origin>,
        devices: Vec<String>,
        mut findings: Vec<DoctorFinding>,
    ) -> Self {
        findings.sort_by_key(|finding| finding.group);
        let count = |status| findings.iter().filter(|f| f.status == status).count();
        let counts = DoctorCounts {
            ok: count(DoctorStatus::Ok),
            warn: count(DoctorStatus::Warn),
            fail: count(DoctorStatus::Fail),
            skip: count(DoctorStatus::Skip),
        };
        Self {
            origin,
            devices,
            counts,
            first: first_remedy(&findings),
            findings,
        }
    }

    /// Whether no check failed.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.counts.fail == 0
    }

    /// Number of checks by status, as a line without newline.
    #[must_use]
    pub fn verdict(&self) -> String {
        let counts = &self.counts;
        let skip = match counts.skip {
            0 => String::new(),
            skip => format!(", {skip} skip"),
        };
        let (ok, warn, fail) = (counts.ok, counts.warn, counts.fail);
        format!("{ok} ok, {warn} warn, {fail} fail{skip}")
    }
}

/// The most important remedy: failures before warnings, then by weight, then in order.
fn first_remedy(findings: &[DoctorFinding]) -> Option<String> {
    let is_problem = |it: &&DoctorFinding| {
        matches!(it.status, DoctorStatus::Fail | DoctorStatus::Warn) && it.remedy.is_some()
    };
    let problems = findings.iter().filter(is_problem);
    let first = problems.min_by_key(|it| Reverse((it.status == DoctorStatus::Fail, it.weight)));
    first?.remedy.clone()
}

//! Whether a machine is set up for fast transfers: one finding a check.

mod finding;
mod text;

pub use finding::{DoctorFinding, DoctorGroup, DoctorStatus};
pub use text::DoctorLook;

use std::cmp::Reverse;

use serde::Serialize;

use crate::{Origin, SCHEMA_VERSION};

/// How many checks ended how.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct DoctorCounts {
    /// As they should be.
    pub ok: usize,
    /// To look at.
    pub warn: usize,
    /// Wrong.
    pub fail: usize,
    /// Not seen.
    pub skip: usize,
}

/// A machine, examined.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Doctor {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// The device, the first where there are several; missing where there is none.
    #[serde(flatten)]
    pub origin: Option<Origin>,
    /// Names of all devices that were looked at.
    pub devices: Vec<String>,
    /// How many checks ended how.
    pub counts: DoctorCounts,
    /// What to do first, where there is something to do.
    pub first: Option<String>,
    /// Every check, by group.
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
            schema: SCHEMA_VERSION,
            origin,
            devices,
            counts,
            first: first_remedy(&findings),
            findings,
        }
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.counts.fail == 0
    }

    /// One line, without its end: how many checks ended how.
    #[must_use]
    pub fn verdict(&self) -> String {
        let DoctorCounts {
            ok,
            warn,
            fail,
            skip,
        } = self.counts;
        let mut text = format!("{ok} ok, {warn} warn, {fail} fail");
        if skip > 0 {
            text.push_str(&format!(", {skip} skip"));
        }
        text
    }

    /// The report as JSON, over several lines, with a line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("plain data becomes JSON");
        json.push('\n');
        json
    }
}

/// The remedy that matters most: what is wrong comes before what could be better, and among equals
/// the one that was found first.
fn first_remedy(findings: &[DoctorFinding]) -> Option<String> {
    let rank = |finding: &DoctorFinding| match finding.status {
        DoctorStatus::Fail => Some(1),
        DoctorStatus::Warn => Some(0),
        DoctorStatus::Ok | DoctorStatus::Skip => None,
    };
    findings
        .iter()
        .filter(|finding| finding.remedy.is_some())
        .filter_map(|finding| Some((rank(finding)?, finding)))
        .min_by_key(|(rank, finding)| Reverse((*rank, finding.weight)))
        .and_then(|(_, finding)| finding.remedy.clone())
}

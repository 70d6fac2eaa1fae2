//! `selftest`: results of the conformance suite.

use serde::Serialize;

use crate::Origin;

/// Result of a case.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "verdict", content = "reason", rename_all = "snake_case")]
pub enum SelftestVerdict {
    /// Correct.
    Passed,
    /// Wrong, and how.
    Failed(String),
    /// The device lacks the feature.
    Skipped(String),
}

/// One case.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SelftestCase {
    /// Its name.
    pub name: String,
    /// Its result.
    #[serde(flatten)]
    pub verdict: SelftestVerdict,
}

impl SelftestCase {
    /// One line, with a newline.
    #[must_use]
    pub fn to_text(&self) -> String {
        let name = &self.name;
        match &self.verdict {
            SelftestVerdict::Passed => format!("ok       {name}\n"),
            SelftestVerdict::Failed(reason) => format!("FAILED   {name}: {reason}\n"),
            SelftestVerdict::Skipped(reason) => format!("skipped  {name}: {reason}\n"),
        }
    }
}

/// The whole run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Selftest {
    /// The device.
    #[serde(flatten)]
    pub origin: Origin,
    /// Passed cases.
    pub passed: usize,
    /// Failed cases.
    pub failed: usize,
    /// Skipped cases.
    pub skipped: usize,
    /// Leaks and misuse reported by a simulated device after the last case.
    pub findings: Vec<String>,
    /// All cases, in order of execution.
    pub cases: Vec<SelftestCase>,
}

impl Selftest {
    /// A run without cases.
    #[must_use]
    pub fn new(origin: Origin) -> Self {
        Self {
            origin,
            passed: 0,
            failed: 0,
            skipped: 0,
            findings: Vec::new(),
            cases: Vec::new(),
        }
    }

    /// Adds a case.
    pub fn push(&mut self, case: SelftestCase) {
        match case.verdict {
            SelftestVerdict::Passed => self.passed += 1,
            SelftestVerdict::Failed(_) => self.failed += 1,
            SelftestVerdict::Skipped(_) => self.skipped += 1,
        }
        self.cases.push(case);
    }

    /// Whether nothing failed.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.failed == 0 && self.findings.is_empty()
    }

    /// The lines after those of the cases.
    #[must_use]
    pub fn summary(&self) -> String {
        let findings = self.findings.iter();
        let findings: String = findings.map(|it| format!("FINDING  {it}\n")).collect();
        format!(
            "{findings}{} passed, {} failed, {} skipped\n{}\n",
            self.passed,
            self.failed,
            self.skipped,
            self.origin.line()
        )
    }
}

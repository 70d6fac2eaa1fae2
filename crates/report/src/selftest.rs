//! The conformance suite, as it went.

use serde::Serialize;

use crate::{Origin, SCHEMA_VERSION};

/// How a case ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "verdict", content = "reason", rename_all = "snake_case")]
pub enum SelftestVerdict {
    /// As it must be.
    Passed,
    /// Not as it must be, and how.
    Failed(String),
    /// The device lacks the feature.
    Skipped(String),
}

/// One case.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SelftestCase {
    /// Its name.
    pub name: String,
    /// How it ended.
    #[serde(flatten)]
    pub verdict: SelftestVerdict,
}

impl SelftestCase {
    /// One line, with its end.
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
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// The device.
    #[serde(flatten)]
    pub origin: Origin,
    /// Passed cases.
    pub passed: usize,
    /// Failed cases.
    pub failed: usize,
    /// Skipped cases.
    pub skipped: usize,
    /// What a simulated device found left over after the last case.
    pub findings: Vec<String>,
    /// Every case, in the order of the run.
    pub cases: Vec<SelftestCase>,
}

impl Selftest {
    /// A run that has not begun.
    #[must_use]
    pub fn new(origin: Origin) -> Self {
        Self {
            schema: SCHEMA_VERSION,
            origin,
            passed: 0,
            failed: 0,
            skipped: 0,
            findings: Vec::new(),
            cases: Vec::new(),
        }
    }

    /// Add a case.
    pub fn push(&mut self, case: SelftestCase) {
        match case.verdict {
            SelftestVerdict::Passed => self.passed += 1,
            SelftestVerdict::Failed(_) => self.failed += 1,
            SelftestVerdict::Skipped(_) => self.skipped += 1,
        }
        self.cases.push(case);
    }

    /// Whether the device does all that it must.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.failed == 0 && self.findings.is_empty()
    }

    /// What follows the lines of the cases.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            text.push_str(&format!("FINDING  {finding}\n"));
        }
        text.push_str(&format!(
            "{} passed, {} failed, {} skipped\n{}\n",
            self.passed,
            self.failed,
            self.skipped,
            self.origin.line()
        ));
        text
    }

    /// The run as JSON, over several lines, with a line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("plain data becomes JSON");
        json.push('\n');
        json
    }
}

//! Running the suite.

use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pinlane_driver::Platform;

use crate::{Case, NotPassed, TestDevice, driver, library};

/// All cases, in the order in which they run.
#[must_use]
pub fn suite() -> Vec<Case> {
    [driver::cases().as_slice(), library::CASES].concat()
}

/// The result of a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaseResult {
    /// Name of the case.
    pub name: &'static str,
    /// Whether the case misuses the driver on purpose.
    pub misuse: bool,
    /// How it ended.
    pub verdict: Verdict,
}

/// How a case ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The driver keeps its contract.
    Passed,
    /// It does not, with the reason.
    Failed(String),
    /// The device lacks this feature.
    Skipped(&'static str),
}

/// Number of cases by verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Passed cases.
    pub passed: usize,
    /// Failed cases.
    pub failed: usize,
    /// Skipped cases.
    pub skipped: usize,
}

impl Summary {
    /// Counts a case.
    pub fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Failed(_) => self.failed += 1,
            Verdict::Skipped(_) => self.skipped += 1,
        }
    }
}

/// Runs all cases whose name contains `filter`. Passes each result to `on_result`, which can stop
/// the run.
pub fn run(
    platform: &dyn Platform,
    ordinal: u32,
    filter: Option<&str>,
    on_result: &mut dyn FnMut(&CaseResult) -> ControlFlow<()>,
) -> Summary {
    // Every case opens the device. Creating a GPU's context takes a fifth of a second, so keep it
    // alive. If the device cannot be used at all, the cases will report it.
    let _context = platform.open(ordinal).inspect(|device| {
        let _ = device.memory_info();
    });
    let mut summary = Summary::default();
    for case in suite() {
        if filter.is_none_or(|text| case.name.contains(text)) {
            let result = run_case(&case, platform, ordinal);
            summary.add(&result.verdict);
            if on_result(&result).is_break() {
                break;
            }
        }
    }
    summary
}

/// Runs a case. A panic is a failure of the case.
pub fn run_case(case: &Case, platform: &dyn Platform, ordinal: u32) -> CaseResult {
    let test = TestDevice { platform, ordinal };
    // A case owns all its state, and its rig frees it while the panic unwinds.
    let verdict = match catch_unwind(AssertUnwindSafe(|| (case.run)(&test))) {
        Ok(Ok(())) => Verdict::Passed,
        Ok(Err(NotPassed::Failed(reason))) => Verdict::Failed(reason),
        Ok(Err(NotPassed::Skipped(reason))) => Verdict::Skipped(reason),
        Err(panic) => Verdict::Failed(format!("panicked: {}", panic_text(&*panic))),
    };
    CaseResult {
        name: case.name,
        misuse: case.misuse,
        verdict,
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref().map(String::as_str));
    text.unwrap_or("without a message")
}

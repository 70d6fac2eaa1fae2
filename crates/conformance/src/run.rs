//! Running the suite.

use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pinlane_driver::Platform;

use crate::{Bench, Case, Stopped, suite};

/// What became of one case.
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
    /// The driver does as it must.
    Passed,
    /// It does not, and how.
    Failed(String),
    /// The device says that it lacks this feature.
    Skipped(&'static str),
}

/// How many cases ended which way.
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
    /// Count one more case.
    pub fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Failed(_) => self.failed += 1,
            Verdict::Skipped(_) => self.skipped += 1,
        }
    }
}

/// Run all cases whose name holds `filter`, and tell each result as it comes, until `on_result`
/// has heard enough.
pub fn run(
    platform: &dyn Platform,
    ordinal: u32,
    filter: Option<&str>,
    on_result: &mut dyn FnMut(&CaseResult) -> ControlFlow<()>,
) -> Summary {
    // Cases open the device anew. On a GPU its context takes a fifth of a second to make, unless
    // somebody keeps it; a device that cannot be used at all fails the cases themselves.
    let _kept = platform.open(ordinal).inspect(|device| {
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

/// Run one case. A panic in it is a failure of that case.
pub fn run_case(case: &Case, platform: &dyn Platform, ordinal: u32) -> CaseResult {
    let bench = Bench::new(platform, ordinal);
    // A case owns all its state, and the rig frees it while the panic unwinds.
    let verdict = match catch_unwind(AssertUnwindSafe(|| (case.run)(&bench))) {
        Ok(Ok(())) => Verdict::Passed,
        Ok(Err(Stopped::Failed(reason))) => Verdict::Failed(reason),
        Ok(Err(Stopped::Skipped(reason))) => Verdict::Skipped(reason),
        Err(panic) => Verdict::Failed(format!("panicked: {}", panic_text(&*panic))),
    };
    CaseResult {
        name: case.name,
        misuse: case.misuse,
        verdict,
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&str>() {
        text
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text
    } else {
        "with something that is no text"
    }
}

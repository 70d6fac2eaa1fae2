//! One test suite for every driver: the simulated GPU, simcuda, a real GPU.
//!
//! ```text
//!   suite()          all cases
//!     driver/*       what the trait `Driver` promises, by topic
//!     library/*      what the library does on it, one small program per feature
//!   run()            runs each case on a newly opened device and catches panics
//!   rig              creates what a case needs and frees all of it
//! ```
//!
//! A case passes, fails, or is skipped. It may be skipped only if
//! [`DeviceInfo`](pinlane_driver::DeviceInfo) says that the device lacks the feature.
//!
//! No case depends on timing to show that work is still in flight. It closes a gate in a stream, a
//! callback that does not return: later work cannot run until the case opens the gate, on any
//! device.
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use pinlane_conformance::{Verdict, run};
//! use pinlane_model::Profile;
//! use pinlane_sim::Sim;
//!
//! let sim = Sim::new(Profile::builtin("pcie3-x16").unwrap());
//! let summary = run(&sim, 0, Some("events/"), &mut |result| {
//!     assert_eq!(result.verdict, Verdict::Passed, "{}", result.name);
//!     ControlFlow::Continue(())
//! });
//! assert!(summary.passed > 0 && summary.failed == 0);
//! ```

mod case;
mod driver;
pub mod library;
mod outcome;
mod pattern;
mod rig;
mod run;

pub use case::{Case, TestDevice};
pub use outcome::{NotPassed, Outcome};
pub use run::{CaseResult, Summary, Verdict, run, run_case, suite};

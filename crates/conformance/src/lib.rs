//! One suite that every driver must pass: the simulated GPU, libcuda's stand-in, a real GPU.
//!
//! ```text
//!   suite()          the list of cases, by name
//!     driver/*       what the trait `Driver` promises, one file a topic
//!     library/*      what the library does on it, one small program for each thing
//!   run()            each case on a freshly opened device, panics caught
//!   rig              what a case works with: it makes things and frees every one of them
//! ```
//!
//! A case passes, fails, or is skipped, and it may be skipped only where the device itself says in
//! [`DeviceInfo`](pinlane_driver::DeviceInfo) that it lacks the feature.
//!
//! "Still in flight" is never shown by time. A case closes a gate (a callback that does not return)
//! in a stream: what comes behind it cannot run before the case opens it, on any device.
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

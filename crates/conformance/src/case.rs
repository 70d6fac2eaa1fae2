//! What a case is and how it ends.

use std::error::Error;

use crate::Bench;

/// One thing that a driver must do.
#[derive(Clone, Copy)]
pub struct Case {
    /// Topic and claim, such as `streams/wait-event-orders-across-streams`.
    pub name: &'static str,
    /// The check itself.
    pub run: fn(&Bench<'_>) -> Outcome,
    /// Does on purpose what a driver refuses, and a checking driver reports. Any other case gives
    /// a checking driver nothing to report.
    pub misuse: bool,
}

impl Case {
    /// A case of correct use.
    pub(crate) const fn new(name: &'static str, run: fn(&Bench<'_>) -> Outcome) -> Self {
        Self {
            name,
            run,
            misuse: false,
        }
    }

    /// A case that misuses the driver and expects to be refused.
    pub(crate) const fn misuse(name: &'static str, run: fn(&Bench<'_>) -> Outcome) -> Self {
        Self {
            name,
            run,
            misuse: true,
        }
    }
}

/// How a case ends: `Ok` is passed.
pub type Outcome = Result<(), Stopped>;

/// Why a case did not pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// The driver broke its promise, and how.
    Failed(String),
    /// The device says that it lacks this feature.
    Skipped(&'static str),
}

// `Stopped` is no `Error` itself, so that `?` turns every error into a failure.
impl<E: Error> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Skips the case where the device lacks a feature.
pub(crate) fn needs(feature: bool, name: &'static str) -> Outcome {
    if feature {
        Ok(())
    } else {
        Err(Stopped::Skipped(name))
    }
}

/// Fails the case unless the condition holds.
macro_rules! check {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::Stopped::Failed(format!(
                "{} ({}:{})", format_args!($($message)+), file!(), line!()
            )));
        }
    };
}

/// Fails the case unless both sides are equal.
macro_rules! check_eq {
    ($found:expr, $expected:expr, $($message:tt)+) => {
        match (&$found, &$expected) {
            (found, expected) => $crate::case::check!(
                found == expected,
                "{}: expected {expected:?}, found {found:?}", format_args!($($message)+)
            ),
        }
    };
}

/// Fails the case unless the result is this kind of error.
macro_rules! check_error {
    ($result:expr, $kind:pat) => {
        match $result {
            Err(error) if matches!(error.kind, $kind) => {}
            other => $crate::case::check!(
                false,
                "expected the error {}, found {other:?}",
                stringify!($kind)
            ),
        }
    };
}

pub(crate) use {check, check_eq, check_error};

//! How a case ends, and the checks that end it.

use std::error::Error;

/// How a case ends: `Ok` if it passed.
pub type Outcome = Result<(), NotPassed>;

/// Why a case did not pass.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NotPassed {
    /// The driver broke its contract, with the reason.
    Failed(String),
    /// The device lacks this feature.
    Skipped(&'static str),
}

// `NotPassed` is not an `Error` itself, so that `?` can turn every error into a failure.
impl<E: Error> From<E> for NotPassed {
    fn from(error: E) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Skips the case if the device lacks a feature.
pub(crate) fn needs(feature: bool, name: &'static str) -> Outcome {
    if feature {
        Ok(())
    } else {
        Err(NotPassed::Skipped(name))
    }
}

/// Fails the case unless the condition holds.
macro_rules! check {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::NotPassed::Failed(format!(
                "{} ({}:{})", format_args!($($message)+), file!(), line!()
            )));
        }
    };
}

/// Fails the case unless both sides are equal.
macro_rules! check_eq {
    ($found:expr, $expected:expr, $($message:tt)+) => {
        match (&$found, &$expected) {
            (found, expected) => $crate::outcome::check!(
                found == expected,
                "{}: expected {expected:?}, found {found:?}", format_args!($($message)+)
            ),
        }
    };
}

/// Fails the case unless the result is an error of this kind.
macro_rules! check_error {
    ($result:expr, $kind:pat) => {
        match $result {
            Err(error) if matches!(error.kind, $kind) => {}
            other => $crate::outcome::check!(
                false,
                "expected the error {}, found {other:?}",
                stringify!($kind)
            ),
        }
    };
}

pub(crate) use {check, check_eq, check_error};

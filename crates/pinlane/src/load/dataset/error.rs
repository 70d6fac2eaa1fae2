//! Why a sample cannot be had.

use std::error::Error;
use std::fmt;

/// Why a sample cannot be had. Any error turns into one, and so does a text.
#[derive(Debug)]
pub struct SampleError(Box<dyn Error + Send + Sync>);

impl SampleError {
    /// What went wrong.
    #[must_use]
    pub fn cause(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for SampleError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for SampleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

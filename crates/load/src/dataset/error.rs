//! Why a sample could not be read.

use std::error::Error;
use std::ops::Deref;
use std::{fmt, iter};

/// Why a sample could not be read. Converts from any error and from text, and derefs to the original error.
///
/// ```
/// use std::error::Error;
/// use pinlane::load::SampleError;
///
/// let error = SampleError::from(std::io::Error::other("disk failure"));
/// assert!(error.is::<std::io::Error>() && error.source().is_none());
/// assert_eq!(error.to_string(), "disk failure");
/// ```
#[derive(Debug)]
pub struct SampleError(Box<dyn Error + Send + Sync>);

impl SampleError {
    /// The original error.
    #[must_use]
    pub fn cause(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0
    }

    /// The error and its sources in one line. A source that its error already quotes is not repeated.
    pub(crate) fn chain(&self) -> String {
        /// Stops cycles.
        const DEPTH_MAX: usize = 16;
        let sources = iter::successors(self.0.source(), |&error| error.source());
        let mut text = self.0.to_string();
        for source in sources.take(DEPTH_MAX).map(ToString::to_string) {
            if !text.ends_with(&source) {
                text = format!("{text}: {source}");
            }
        }
        text
    }
}

impl Deref for SampleError {
    type Target = dyn Error + Send + Sync;

    fn deref(&self) -> &Self::Target {
        self.cause()
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

//! Why a sample cannot be had.

use std::error::Error;
use std::fmt;
use std::ops::Deref;

/// Why a sample cannot be had. Any error turns into one, and so does a text; it is used as the error
/// that it was made from.
///
/// ```
/// use std::error::Error;
/// use pinlane::load::SampleError;
///
/// let error = SampleError::from(std::io::Error::other("the disk is gone"));
/// assert!(error.is::<std::io::Error>() && error.source().is_none());
/// assert_eq!(error.to_string(), "the disk is gone");
/// ```
#[derive(Debug)]
pub struct SampleError(Box<dyn Error + Send + Sync>);

impl SampleError {
    /// What went wrong.
    #[must_use]
    pub fn cause(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0
    }

    /// What went wrong, and what lies behind it, in one line. An error that says already what lies
    /// behind it says so once.
    pub(crate) fn in_full(&self) -> String {
        /// Enough for any that ends.
        const DEPTH_MAX: usize = 16;
        let chain = std::iter::successors(self.0.source(), |&error| error.source());
        let mut text = self.0.to_string();
        for behind in chain.take(DEPTH_MAX).map(ToString::to_string) {
            if !text.ends_with(&behind) {
                text = format!("{text}: {behind}");
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

//! Errors of pipelines.

use std::fmt;
use std::io;

use pinlane_core::ErrorKind;

/// A stage of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StageKind {
    /// The host reads the chunk from its source.
    Read,
    /// Host to device.
    Upload,
    /// The kernel.
    Kernel,
    /// Device to host.
    Download,
    /// The host passes the results on.
    Write,
}

impl fmt::Display for StageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{self:?}").to_lowercase())
    }
}

/// What a step of a run returns.
pub(super) type RunResult<T> = Result<T, PipelineError>;

/// Why a run failed. All its work is over by then, and all its buffers are free.
#[derive(Debug)]
pub struct PipelineError {
    /// The chunk and the stage; `None` if the run did not start, or if the device failed after everything
    /// was submitted.
    pub place: Option<(u64, StageKind)>,
    /// What went wrong.
    pub cause: Cause,
}

/// The cause of a failed run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// An error of the library, the driver or the kernel function.
    #[error(transparent)]
    Pinlane(#[from] pinlane_core::Error),
    /// An error of a reader, a writer, or a function that fills or takes chunks.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl PipelineError {
    pub(super) fn at(chunk: u64, stage: StageKind, cause: impl Into<Cause>) -> Self {
        Self {
            place: Some((chunk, stage)),
            cause: cause.into(),
        }
    }

    /// The drain thread has failed; its own error says why.
    pub(super) fn stopped() -> Self {
        Self::setup(io::Error::other("the drain thread has stopped"))
    }

    /// An error before the first chunk or after the last.
    pub(super) fn setup(cause: impl Into<Cause>) -> Self {
        Self {
            place: None,
            cause: cause.into(),
        }
    }
}

impl fmt::Display for PipelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some((chunk, stage)) => write!(f, "chunk {chunk}, {stage}: {}", self.cause),
            None => self.cause.fmt(f),
        }
    }
}

impl std::error::Error for PipelineError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.source() // Display already includes the cause itself
    }
}

impl From<pinlane_core::Error> for PipelineError {
    fn from(error: pinlane_core::Error) -> Self {
        Self::setup(error)
    }
}

impl From<PipelineError> for pinlane_core::Error {
    fn from(error: PipelineError) -> Self {
        let kind = match &error.cause {
            Cause::Pinlane(cause) => cause.kind(),
            Cause::Io(_) => ErrorKind::Io,
        };
        Self::other(kind, error)
    }
}

//! What stopped a pipeline, and where.

use std::fmt;
use std::io;

use pinlane_core::ErrorKind;

/// A stage of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StageKind {
    /// The host fetches the chunk from its source.
    Read,
    /// It goes to the device.
    Upload,
    /// The kernel works on it.
    Kernel,
    /// It comes back.
    Download,
    /// The host hands it on.
    Write,
}

impl fmt::Display for StageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Read => "read",
            Self::Upload => "upload",
            Self::Kernel => "kernel",
            Self::Download => "download",
            Self::Write => "write",
        })
    }
}

/// Why a pipeline stopped. All its work is over when this is returned, and all buffers are free.
#[derive(Debug)]
pub struct PipelineError {
    /// The chunk and its stage; `None` when it did not begin, or when the device failed after all
    /// was submitted.
    pub place: Option<(u64, StageKind)>,
    /// What went wrong.
    pub cause: Cause,
}

/// What can go wrong in a stage.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// In this library, the driver or the kernel's own code.
    #[error(transparent)]
    Pinlane(#[from] pinlane_core::Error),
    /// In a reader or a writer, or in the code that fills or takes chunks.
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

    /// The thread that takes the results has ended early, and knows why.
    pub(super) fn stopped() -> Self {
        Self::setup(io::Error::other("nobody takes the results any more"))
    }

    /// Before the first chunk, or after the last.
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
        self.cause.source() // the text above holds the cause's own
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

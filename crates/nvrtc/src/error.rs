//! Why CUDA C could not be compiled.

/// Why CUDA C could not be compiled.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NvrtcError {
    /// The compiler is not installed, or not where it was searched.
    #[error(
        "NVRTC, NVIDIA's compiler library, was not found ({detail}); install it with \
         `pip install nvidia-cuda-nvrtc`, or set PINLANE_NVRTC to the path of libnvrtc.so"
    )]
    NotFound {
        /// Where it was searched, and why a file that exists did not load.
        detail: String,
    },
    /// The source or an option is wrong.
    #[error("the CUDA source does not compile:\n{log}")]
    Source {
        /// The compiler's messages, with the lines of the source.
        log: String,
    },
    /// The source, an option or a name contains a NUL character.
    #[error("{what} contains a NUL character")]
    Nul {
        /// What contains it.
        what: &'static str,
    },
    /// A call of the compiler failed for another reason.
    #[error("{call} failed: {reason}")]
    Call {
        /// The function of NVRTC.
        call: &'static str,
        /// Its result in words.
        reason: String,
    },
}

impl NvrtcError {
    /// Adds the compiler's messages to a call that failed.
    pub(crate) fn with_log(mut self, log: &str) -> Self {
        if let Self::Call { reason, .. } = &mut self
            && !log.is_empty()
        {
            reason.push_str(":\n");
            reason.push_str(log);
        }
        self
    }
}

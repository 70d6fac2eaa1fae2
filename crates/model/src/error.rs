//! Why a profile was refused.

/// A profile that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// Not TOML, a field is missing or unknown, or a value has the wrong type. The message names
    /// the line and the field.
    #[error("the profile cannot be read: {message}")]
    Parse {
        /// What the parser says.
        message: String,
    },
    /// A value that makes no sense.
    #[error("profile field `{field}`: {reason}")]
    Invalid {
        /// Where it is, such as `h2d.pinned.knots`.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl ProfileError {
    /// A wrong value in `field`.
    pub(crate) fn invalid(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid {
            field: field.into(),
            reason: reason.into(),
        }
    }
}

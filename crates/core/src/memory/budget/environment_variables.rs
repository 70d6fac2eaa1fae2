//! The environment variable that sets the budget.

use crate::parse_number::parse_size;
use crate::{Error, Result};

/// Sets the limit of the process.
const PINNED_LIMIT: &str = "PINLANE_PINNED_LIMIT";

/// The limit set in the environment; `u64::MAX` for `none`.
pub(super) fn pinned_limit(variable: impl Fn(&str) -> Option<String>) -> Result<Option<u64>> {
    let Some(value) = variable(PINNED_LIMIT).filter(|value| !value.trim().is_empty()) else {
        return Ok(None);
    };
    if value.trim().eq_ignore_ascii_case("none") {
        return Ok(Some(u64::MAX));
    }
    parse_size(&value).map(Some).map_err(|_| Error::BadSetting {
        variable: PINNED_LIMIT,
        value,
        expected: "a number of bytes, such as 1073741824, 512M or 3.5GiB, or none",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_cannot_be_understood_is_an_error_with_the_name() {
        let limit = |value: &'static str| pinned_limit(move |_| Some(value.to_owned()));
        assert_eq!(limit(""), Ok(None));
        assert_eq!(limit("64K"), Ok(Some(65536)));
        assert_eq!(limit(" 1.5 mb "), Ok(Some(1_500_000)));
        assert_eq!(limit(" None"), Ok(Some(u64::MAX)));
        let error = limit("lots").unwrap_err().to_string();
        assert!(
            error.starts_with("invalid PINLANE_PINNED_LIMIT=\"lots\""),
            "{error}"
        );
        assert_eq!(pinned_limit(|_| None), Ok(None));
    }
}

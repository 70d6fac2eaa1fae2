//! Whole numbers as people write them, with one wording for all that are wrong.

use std::ops::RangeInclusive;

/// The number, if it is one of these.
pub(crate) fn within(text: &str, allowed: RangeInclusive<u64>) -> Result<u64, String> {
    let number = text.trim().parse::<u64>().ok();
    number
        .filter(|number| allowed.contains(number))
        .ok_or_else(|| match (*allowed.start(), *allowed.end()) {
            (least, u64::MAX) => format!("choose a whole number, at least {least}"),
            (least, most) => format!("choose a whole number from {least} to {most}"),
        })
}

/// A number of things, at least one.
pub(crate) fn at_least_1(text: &str) -> Result<usize, String> {
    within(text, 1..=u64::MAX).and_then(fitting)
}

/// A number of things, perhaps none.
pub(crate) fn at_least_0(text: &str) -> Result<usize, String> {
    within(text, 0..=u64::MAX).and_then(fitting)
}

/// A number as this machine counts.
pub(crate) fn fitting(number: u64) -> Result<usize, String> {
    usize::try_from(number).map_err(|_| "choose a smaller number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_are_wrong_are_told_alike() {
        for text in ["0", "-1", "x", "", "1.5", "18446744073709551616"] {
            let told = at_least_1(text);
            assert_eq!(told, Err("choose a whole number, at least 1".to_owned()));
        }
        for text in ["257", "-1", "x"] {
            let told = within(text, 0..=256);
            let from_to = "choose a whole number from 0 to 256";
            assert_eq!(told, Err(from_to.to_owned()), "{text}");
        }
        assert_eq!(
            (within("256", 1..=256), at_least_0(" 0 ")),
            (Ok(256), Ok(0))
        );
    }
}

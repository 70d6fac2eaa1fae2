//! Whole numbers, with the same message for everything that is wrong.

use std::ops::RangeInclusive;

use clap::builder::{RangedI64ValueParser, TypedValueParser};

pub(crate) fn within<T: TryFrom<u64>>(
    allowed: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.trim().parse::<u64>().ok();
        let number = number.filter(|number| allowed.contains(number));
        let number = number.ok_or_else(|| match (allowed.start(), allowed.end()) {
            (least, &u64::MAX) => format!("must be a whole number, at least {least}"),
            (least, most) => format!("must be a whole number from {least} to {most}"),
        })?;
        T::try_from(number).map_err(|_| "too large".to_owned())
    }
}

pub(crate) fn at_least_1(text: &str) -> Result<usize, String> {
    within(1..=u64::MAX)(text)
}

/// A clap parser of numbers from 1.
pub(crate) fn up_to(max: u32) -> impl TypedValueParser<Value = u32> {
    RangedI64ValueParser::<u32>::new().range(1..=i64::from(max))
}

/// Lets the value of every flag be negative, so that its parser reports the error.
pub(crate) fn allow_negative(arg: clap::Arg) -> clap::Arg {
    let takes_value = arg.get_action().takes_values() && !arg.is_positional();
    arg.allow_negative_numbers(takes_value)
}

/// Parses digits that underscores may group, such as `10_000_000`.
pub(crate) fn grouped(text: &str) -> Result<u64, String> {
    let grouped = !text.starts_with('_') && !text.ends_with('_');
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    if !plain || !grouped {
        return Err("not a whole number; use digits such as 10000000 or 10_000_000".to_owned());
    }
    digits.parse().map_err(|_| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_mistakes_get_the_same_message() {
        for text in ["0", "-1", "x", "", "1.5", "18446744073709551616"] {
            let result = at_least_1(text);
            assert_eq!(result, Err("must be a whole number, at least 1".to_owned()));
        }
        for text in ["257", "-1", "x"] {
            let result = within::<u64>(0..=256)(text);
            let from_to = "must be a whole number from 0 to 256";
            assert_eq!(result, Err(from_to.to_owned()), "{text}");
        }
        assert_eq!(within::<u64>(1..=256)("256"), Ok(256));
        assert_eq!(within::<usize>(0..=u64::MAX)(" 0 "), Ok(0));
        assert_eq!(within::<usize>(0..=256)("0"), Ok(0));
        assert!(within::<usize>(1..=1024)("0").is_err());
    }

    #[test]
    fn digits_may_be_grouped() {
        for (text, number) in [("0", 0), ("1", 1), ("10_000_000", 10_000_000), ("007", 7)] {
            assert_eq!(grouped(text), Ok(number), "{text}");
        }
        for text in [
            "", "_", "_1", "1_", "-1", "+1", "1.5", "10M", "1e7", " 1", "٣",
        ] {
            let error = grouped(text).expect_err(text);
            assert!(error.contains("10_000_000"), "{text}: {error}");
        }
        for text in ["18446744073709551616", "99999999999999999999999"] {
            assert!(grouped(text).is_err_and(|error| error == "too large"));
        }
    }
}

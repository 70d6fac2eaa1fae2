//! Whole numbers, with the same message for everything that is wrong.

use std::ops::RangeInclusive;

use pinlane::internal::parse_whole;

pub(crate) fn within<T: TryFrom<u64>>(
    allowed: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = parse_whole(text).ok();
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

pub(crate) fn up_to(max: u32) -> impl Fn(&str) -> Result<u32, String> + Clone {
    within(1..=u64::from(max))
}

/// Lets the value of every flag be negative, so that its parser reports the error.
pub(crate) fn allow_negative(arg: clap::Arg) -> clap::Arg {
    let takes_value = arg.get_action().takes_values() && !arg.is_positional();
    arg.allow_negative_numbers(takes_value)
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
        assert_eq!(at_least_1("1e7"), Ok(10_000_000));
        assert_eq!(at_least_1("10_000_000"), Ok(10_000_000));
        assert_eq!(within::<usize>(0..=u64::MAX)(" 0 "), Ok(0));
        assert_eq!(within::<usize>(0..=256)("0"), Ok(0));
        assert!(within::<usize>(1..=1024)("0").is_err());
    }
}

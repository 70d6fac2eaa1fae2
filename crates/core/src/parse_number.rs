//! Numbers and sizes as users write them, in flags and environment variables.

/// Units of bytes, in lower case. A single letter is a power of two, as in the options of most tools.
const UNITS: [(&str, u64); 14] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
];

/// More digits than any number of 64 bits has, and few enough for the arithmetic below.
const DIGITS_MAX: usize = 24;

/// Why a text is no number or size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumberError {
    /// Not a number, an unknown unit, or a negative number.
    Invalid,
    /// A fraction, without a unit that makes it whole.
    Fraction,
    /// More than 64 bits.
    TooLarge,
}

/// Parses a number of bytes: `4096`, `1e9`, `10_000`, `256M`, `256 KiB`, `3.5gib`, `2GB`. Units in any case;
/// with a unit, a fraction is rounded to whole bytes.
pub fn parse_size(text: &str) -> Result<u64, NumberError> {
    let (number, unit) = split(text.trim());
    let unit = unit.trim_start().to_ascii_lowercase();
    let unit = UNITS.iter().find(|(name, _)| *name == unit);
    scaled(number, unit.ok_or(NumberError::Invalid)?.1)
}

/// Parses a whole number: `10000000`, `10_000_000`, `1e7`, `1.5e6`.
pub fn parse_whole(text: &str) -> Result<u64, NumberError> {
    match split(text.trim()) {
        (number, "") => scaled(number, 1),
        _ => Err(NumberError::Invalid),
    }
}

/// Splits a number from what follows it.
fn split(text: &str) -> (&str, &str) {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'_' | b'.');
    let mut end = text.bytes().take_while(is_part).count();
    if let Some(exponent) = text[end..].strip_prefix(['e', 'E']) {
        let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if digits(unsigned) > 0 {
            end = text.len() - unsigned.len() + digits(unsigned);
        }
    }
    text.split_at(end)
}

/// A number of units.
fn scaled(number: &str, unit: u64) -> Result<u64, NumberError> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let digits = digits_of(whole)? + &digits_of(fraction)?;
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Ok(0);
    }
    if digits.len() > DIGITS_MAX {
        return Err(NumberError::TooLarge);
    }
    // Exact: 24 digits and a unit of 40 bits are less than 2^128.
    let product = digits.parse::<u128>().expect("digits") * u128::from(unit);
    // An exponent that does not fit is far from any number of 64 bits, too.
    let far = if exponent.starts_with('-') {
        i32::MIN
    } else {
        i32::MAX
    };
    let fraction_len = fraction.bytes().filter(u8::is_ascii_digit).count() as i32;
    let exponent = exponent
        .parse::<i32>()
        .unwrap_or(far)
        .saturating_sub(fraction_len);
    let power = 10_u128.checked_pow(exponent.unsigned_abs());
    let value = match (exponent >= 0, power) {
        (true, power) => power.and_then(|power| product.checked_mul(power)),
        (false, Some(power)) if product % power == 0 => Some(product / power),
        (false, _) if unit == 1 => return Err(NumberError::Fraction),
        (false, Some(power)) => Some((product + power / 2) / power),
        (false, None) => Some(0),
    };
    let value = value.and_then(|value| u64::try_from(value).ok());
    value.ok_or(NumberError::TooLarge)
}

/// Digits that underscores may group.
fn digits_of(text: &str) -> Result<String, NumberError> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || byte == b'_';
    let is_grouped = !text.starts_with('_') && !text.ends_with('_');
    match !text.is_empty() && is_grouped && text.bytes().all(is_digit) {
        true => Ok(text.replace('_', "")),
        false => Err(NumberError::Invalid),
    }
}

#[cfg(test)]
mod tests {
    use super::NumberError::{Fraction, Invalid, TooLarge};
    use super::*;

    #[test]
    fn sizes_in_all_spellings() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("512B", 512),
            ("256M", 256 << 20),
            ("256m", 256 << 20),
            ("256mb", 256_000_000),
            ("256MB", 256_000_000),
            ("256MiB", 256 << 20),
            ("256 KiB", 256 << 10),
            (" 8 gib ", 8 << 30),
            ("3.5GiB", 7 << 29),
            ("0.5k", 512),
            ("0.1KiB", 102),
            ("0.0001KB", 0),
            ("1.5TB", 1_500_000_000_000),
            ("2t", 2 << 40),
            ("1e9", 1_000_000_000),
            ("1e3KiB", 1_024_000),
            ("1.5E+3", 1500),
            ("25e-1KB", 2500),
            ("10_000_000", 10_000_000),
            ("1_0.5_0K", 10_752),
            ("18446744073709551615", u64::MAX),
            ("16777215.5T", (16_777_215 << 40) + (1 << 39)),
            ("0e999999999999", 0),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn whole_numbers() {
        for (text, number) in [
            ("0", 0),
            ("007", 7),
            ("1e7", 10_000_000),
            ("1.5e6", 1_500_000),
            ("1.0", 1),
            ("100e-2", 1),
            (" 10_000_000 ", 10_000_000),
        ] {
            assert_eq!(parse_whole(text), Ok(number), "{text}");
        }
        for (text, error) in [
            ("1.5", Fraction),
            ("1e-1", Fraction),
            ("1e-99999999999", Fraction),
            ("10M", Invalid),
            ("1B", Invalid),
            ("", Invalid),
            ("18446744073709551616", TooLarge),
            ("1e20", TooLarge),
            ("1e99999999999", TooLarge),
        ] {
            assert_eq!(parse_whole(text), Err(error), "{text}");
        }
    }

    #[test]
    fn texts_that_are_no_sizes() {
        for text in [
            "", "GiB", "-1", "+1", "1.", ".5", "1..5", "1.2.3", "1,5G", "1e", "1eK", "_1", "1_",
            "1_.5", "1._5", "12XB", "8GB!", "8 G B", "0x10", "none", "inf", "NaN", "٣", "1µB",
        ] {
            assert_eq!(parse_size(text), Err(Invalid), "{text}");
        }
        assert_eq!(parse_size("1.5B"), Err(Fraction));
        for text in [
            "16777216T",
            "99999999999GiB",
            "9e99",
            "9999999999999999999999999",
        ] {
            assert_eq!(parse_size(text), Err(TooLarge), "{text}");
        }
    }
}

//! Sizes, numbers and shards as users write them.

use pinlane_core::internal::{NumberError, parse_size, parse_whole};
use pinlane_load::Shard;

/// Units, longest names first.
const UNITS: [(&str, u64); 13] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("b", 1),
];

/// A text of a flag or a variable. Floating-point arithmetic finds about the same size.
pub fn size(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let (size, whole) = (parse_size(text), parse_whole(text));
    if whole != Err(NumberError::Invalid) {
        assert_eq!(size, whole, "{text:?}");
    }
    // Neither case nor space around it matters.
    assert_eq!(parse_size(&format!("\t{text} ")), size, "{text:?}");
    assert_eq!(parse_size(&text.to_ascii_uppercase()), size, "{text:?}");
    match (size, approximately(text)) {
        (Ok(bytes), Some(about)) => {
            let off = (bytes as f64 - about).abs();
            assert!(off <= 0.5 + about * 1e-9, "{text:?}: {bytes}, not {about}");
            check_written(bytes);
        }
        (Ok(bytes), None) => panic!("{text:?} is no size, but {bytes}"),
        (Err(NumberError::TooLarge), about) => {
            let about = about.expect("a number");
            let digits = text.bytes().filter(u8::is_ascii_digit).count();
            // Many digits are refused, even if most are behind the point.
            assert!(about > 1.8e19 || digits > 20, "{text:?} is about {about}");
        }
        (Err(NumberError::Fraction), about) => assert!(about.is_some(), "{text:?}"),
        (Err(NumberError::Invalid), _) => {}
    }
    if let Ok(shard) = text.parse::<Shard>() {
        assert!(shard.rank() < shard.world());
        assert_eq!(shard.to_string().parse(), Ok(shard));
    }
}

/// A size is read back from how it is written, with any unit.
fn check_written(bytes: u64) {
    assert_eq!(parse_size(&bytes.to_string()), Ok(bytes));
    for (name, unit) in UNITS {
        let expected = bytes.checked_mul(unit).ok_or(NumberError::TooLarge);
        assert_eq!(parse_size(&format!("{bytes} {name}")), expected);
    }
}

fn approximately(text: &str) -> Option<f64> {
    let text = text.trim().to_ascii_lowercase().replace('_', "");
    let unit = UNITS
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)));
    let (number, unit) = unit.unwrap_or((&text, 1));
    let number: f64 = number.trim_end().parse().ok()?;
    Some(number * unit as f64).filter(|number| !number.is_nan())
}

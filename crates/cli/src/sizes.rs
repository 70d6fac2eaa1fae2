//! Lists and ranges of sizes as people write them.

use crate::size;

/// Sizes that a list may hold at most.
const AT_MOST: usize = 256;

/// Sizes, rising, each once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sizes(pub(crate) Vec<usize>);

/// Sizes of `text`: separated by commas, each a size such as `4KiB` or a range. `4KiB..1MiB` doubles
/// from one to the next, `4KiB..1MiB*4` takes four times as much; the last one counts where a step
/// meets it.
pub(crate) fn parse(text: &str) -> Result<Sizes, String> {
    let mut sizes = Vec::new();
    for item in text.split(',') {
        match item.split_once("..") {
            None => sizes.push(one(item)?),
            Some((first, rest)) => range(first, rest, &mut sizes)?,
        }
        if sizes.len() > AT_MOST {
            return Err(format!("more than {AT_MOST} sizes; write fewer"));
        }
    }
    sizes.sort_unstable();
    sizes.dedup();
    Ok(Sizes(sizes))
}

fn one(text: &str) -> Result<usize, String> {
    size::parse(text).map_err(|reason| format!("`{}`: {reason}", text.trim()))
}

fn range(first: &str, rest: &str, sizes: &mut Vec<usize>) -> Result<(), String> {
    let (last, step) = match rest.split_once('*') {
        None => (rest, 2),
        Some((last, step)) => {
            let step = step.trim().parse().ok().filter(|step| *step >= 2);
            let step = step.ok_or("the step of a range is a whole number from 2 on, such as *4")?;
            (last, step)
        }
    };
    let (first, last) = (one(first)?, one(last)?);
    if first > last {
        return Err("the range goes down; write the smaller size first".to_owned());
    }
    let mut next = Some(first);
    while let Some(bytes) = next.filter(|bytes| *bytes <= last) {
        // At most as many as a number has bits.
        sizes.push(bytes);
        next = bytes.checked_mul(step);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges() {
        for (text, sizes) in [
            ("4KiB", &[4096][..]),
            ("1MiB, 4KiB,4096", &[4096, 1 << 20]),
            ("1KiB..8KiB", &[1024, 2048, 4096, 8192]),
            ("1KiB..20KiB*4", &[1024, 4096, 16_384]),
            ("3..3", &[3]),
            ("1KB..1MB*10", &[1000, 10_000, 100_000, 1_000_000]),
            ("7, 1..4", &[1, 2, 4, 7]),
        ] {
            assert_eq!(parse(text), Ok(Sizes(sizes.to_vec())), "{text}");
        }
        let all = parse("1..8388607TiB").expect("a long range");
        assert_eq!(all.0.len(), 63);
    }

    #[test]
    fn words_that_are_no_sizes() {
        for (text, reason) in [
            ("", "not a size"),
            ("4KiB,", "not a size"),
            ("..4KiB", "not a size"),
            ("4KiB..", "not a size"),
            ("4KiB...8KiB", "not a size"),
            ("8KiB..4KiB", "goes down"),
            ("4KiB..8KiB*1", "from 2 on"),
            ("4KiB..8KiB*", "from 2 on"),
            ("4KiB..8KiB*-2", "from 2 on"),
            ("4KiB*2", "not a size"),
            ("0..8", "at least 1"),
            ("99999999TiB", "more than memory can hold"),
            ("99999999999999999999", "more than memory can hold"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
        let many: Vec<String> = (1..=300).map(|bytes| bytes.to_string()).collect();
        assert!(parse(&many.join(",")).is_err());
    }

    /// A million strings of the grammar's own letters: an answer for each, and a sound one.
    #[test]
    fn no_string_is_too_odd() {
        const LETTERS: [&str; 20] = [
            "0",
            "1",
            "9",
            "4",
            "KiB",
            "MiB",
            "TiB",
            "B",
            "GB",
            "..",
            "...",
            ".",
            "*",
            ",",
            " ",
            "-",
            "µ",
            "e",
            "18446744073709551615",
            "\0",
        ];
        let mut random = crate::random::Random::new(5);
        let rounds = if cfg!(debug_assertions) {
            100_000
        } else {
            1_000_000
        };
        for _ in 0..rounds {
            let letters = (0..random.below(12)).map(|_| LETTERS[random.below(LETTERS.len())]);
            let text: String = letters.collect();
            let _ = size::parse(&text);
            if let Ok(Sizes(sizes)) = parse(&text) {
                assert!(!sizes.is_empty() && sizes[0] > 0, "{text:?}");
                assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]), "{text:?}");
            }
        }
    }
}

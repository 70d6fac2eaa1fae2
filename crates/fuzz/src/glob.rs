//! Name patterns, compared with a slow matcher.

use pinlane_load::Glob;

use crate::tensor_file_headers::check_error;

/// A pattern and, after the first newline, a name to match; without one, the pattern itself.
pub fn glob(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let (pattern, name) = text.split_once('\n').unwrap_or((text, text));
    let chars: Vec<char> = pattern.chars().collect();
    match (Glob::new(pattern), pattern_parts(&chars)) {
        (Ok(glob), Some(parts)) => {
            assert_eq!(glob.pattern(), pattern);
            assert_eq!(glob.matches(name), is_match(&parts, name), "{text:?}");
        }
        (Err(error), None) => check_error(&error),
        (Ok(_), None) => panic!("{pattern:?} is not a pattern"),
        (Err(error), Some(_)) => panic!("{pattern:?} is a pattern: {error}"),
    }
}

/// A part of a pattern.
enum PatternPart<'a> {
    Star,
    Any,
    One(char),
    Class { negated: bool, members: &'a [char] },
}

impl PatternPart<'_> {
    fn matches(&self, c: char) -> bool {
        match self {
            Self::Star | Self::Any => true,
            Self::One(one) => *one == c,
            Self::Class { negated, members } => {
                let ranges = ranges(members).expect("checked by `pattern_parts`");
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

/// The parts of a pattern; `None` if it is invalid.
fn pattern_parts(mut rest: &[char]) -> Option<Vec<PatternPart<'_>>> {
    let mut parts = Vec::new();
    while let [first, after @ ..] = rest {
        rest = after;
        parts.push(match first {
            '*' => PatternPart::Star,
            '?' => PatternPart::Any,
            '[' => {
                let negated = matches!(rest, ['!' | '^', ..]);
                rest = &rest[usize::from(negated)..];
                // The first character is a member, even if it is a bracket.
                let end = 1 + rest.iter().skip(1).position(|c| *c == ']')?;
                let members = &rest[..end];
                ranges(members)?;
                rest = &rest[end + 1..];
                PatternPart::Class { negated, members }
            }
            c => PatternPart::One(*c),
        });
    }
    Some(parts)
}

/// The ranges of a class; `None` if one is reversed.
fn ranges(mut members: &[char]) -> Option<Vec<(char, char)>> {
    let mut ranges = Vec::new();
    loop {
        let (low, high, rest) = match members {
            [] => return Some(ranges),
            [low, '-', high, rest @ ..] => (*low, *high, rest),
            [one, rest @ ..] => (*one, *one, rest),
        };
        ranges.push((low <= high).then_some((low, high))?);
        members = rest;
    }
}

/// Fills a table: whether the first parts match the first characters.
fn is_match(parts: &[PatternPart<'_>], name: &str) -> bool {
    let mut matched: Vec<bool> = vec![true];
    matched.extend(name.chars().map(|_| false));
    for part in parts {
        let before = matched.clone();
        let is_star = matches!(part, PatternPart::Star);
        matched[0] = is_star && before[0];
        for (at, c) in name.chars().enumerate() {
            matched[at + 1] = match is_star {
                true => before[at + 1] || matched[at],
                false => before[at] && part.matches(c),
            };
        }
    }
    matched[matched.len() - 1]
}

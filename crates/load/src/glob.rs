//! Name patterns.
//!
//! Not the `globset` crate: it matches bytes, so `?` and `[α-ω]` miss non-ASCII characters, and it gives
//! `{`, `**` and `\` meanings that tensor names do not expect.

use crate::{LoadError, LoadErrorKind};

/// A name pattern, as in a shell: `*` matches any text, including dots and no text at all; `?` one
/// character; `[abc]` and `[a-z]` one of these characters; `[!abc]` one other character. There are no
/// escapes: write `[*]` for a star.
///
/// ```
/// use pinlane::load::Glob;
///
/// let glob = Glob::new("model.layers.[0-3].*.weight")?;
/// assert!(glob.matches("model.layers.2.mlp.up.weight"));
/// assert!(!glob.matches("model.layers.4.mlp.up.weight"));
/// # Ok::<(), pinlane::load::LoadError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Glob {
    pattern: String,
    tokens: Vec<GlobToken>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum GlobToken {
    /// `*`.
    AnyText,
    /// `?`.
    AnyChar,
    Literal(char),
    /// `[…]`: inclusive ranges.
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl GlobToken {
    fn matches(&self, c: char) -> bool {
        match self {
            Self::AnyText | Self::AnyChar => true,
            Self::Literal(literal) => *literal == c,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

impl Glob {
    /// Parses a pattern.
    ///
    /// # Errors
    ///
    /// [`LoadErrorKind::InvalidGlob`] for a `[` without a `]`, and for a reversed range.
    pub fn new(pattern: impl Into<String>) -> Result<Self, LoadError> {
        let pattern = pattern.into();
        match tokens(&pattern) {
            Ok(tokens) => Ok(Self { pattern, tokens }),
            Err(reason) => Err(LoadError::from(LoadErrorKind::InvalidGlob {
                pattern,
                reason,
            })),
        }
    }

    /// The pattern as given.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Whether the whole name matches. Takes time proportional to the product of both lengths at most.
    pub fn matches(&self, name: &str) -> bool {
        let (mut token, mut rest) = (0, name);
        // The token after the last star, and the text to retry it on.
        let mut retry: Option<(usize, &str)> = None;
        loop {
            let next = rest.chars().next();
            match (self.tokens.get(token), next) {
                (None, None) => return true,
                (Some(GlobToken::AnyText), _) => {
                    token += 1;
                    retry = Some((token, rest));
                    continue;
                }
                (Some(other), Some(c)) if other.matches(c) => {
                    token += 1;
                    rest = &rest[c.len_utf8()..];
                    continue;
                }
                _ => {}
            }
            // Earlier stars need no retry: the last one can match whatever they could.
            let Some((after_star, left)) = retry else {
                return false;
            };
            let Some(c) = left.chars().next() else {
                return false;
            };
            (token, rest) = (after_star, &left[c.len_utf8()..]);
            retry = Some((token, rest));
        }
    }
}

fn tokens(pattern: &str) -> Result<Vec<GlobToken>, &'static str> {
    let mut tokens = Vec::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        tokens.push(match c {
            '*' => GlobToken::AnyText,
            '?' => GlobToken::AnyChar,
            '[' => {
                let (class, after) = class(rest.as_str())?;
                rest = after.chars();
                class
            }
            literal => GlobToken::Literal(literal),
        });
    }
    Ok(tokens)
}

/// Parses a class after its `[`; returns it and the text after it. A leading `]` is part of the class.
fn class(text: &str) -> Result<(GlobToken, &str), &'static str> {
    let inner = text.strip_prefix(['!', '^']);
    let (negated, text) = (inner.is_some(), inner.unwrap_or(text));
    let mut ranges = Vec::new();
    let mut chars = text.chars();
    loop {
        let low = chars.next().ok_or("[ has no ]")?;
        if low == ']' && !ranges.is_empty() {
            return Ok((GlobToken::Class { negated, ranges }, chars.as_str()));
        }
        // A `-` right before the `]` is literal.
        let mut ahead = chars.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) if high != ']' => {
                chars = ahead;
                high
            }
            _ => low,
        };
        if low > high {
            return Err("a range is reversed");
        }
        ranges.push((low, high));
    }
}

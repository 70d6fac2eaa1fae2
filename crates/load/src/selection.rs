//! Selecting tensors by name or pattern.
//!
//! The `globset` crate matches bytes, so `?` and `[α-ω]` miss non-ASCII characters, and it gives `{`, `**`
//! and `\` meanings that tensor names do not expect.

use std::ops::RangeInclusive;
use std::str::Chars;

use crate::{LoadError, LoadErrorKind};

/// Selects tensors by name or pattern; without any, all tensors.
///
/// ```
/// use pinlane::load::Selection;
///
/// let all = Selection::new();
/// let some = Selection::new().name("lm_head.weight").glob("model.layers.0.*")?;
/// assert_ne!(all, some);
/// # Ok::<(), pinlane::load::LoadError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Selection {
    pub(crate) names: Vec<String>,
    pub(crate) globs: Vec<Glob>,
}

impl Selection {
    /// Selects all tensors, until a name or a pattern is added.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the tensor with exactly this name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into());
        self
    }

    /// Adds all tensors whose names match a pattern; see [`Glob`].
    ///
    /// # Errors
    /// [`LoadErrorKind::InvalidGlob`] for an invalid pattern.
    pub fn glob(mut self, pattern: impl Into<String>) -> Result<Self, LoadError> {
        self.globs.push(Glob::new(pattern)?);
        Ok(self)
    }
}

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
    /// One character in these ranges.
    OneOf(Vec<RangeInclusive<char>>),
    /// One character that is not in these ranges.
    NoneOf(Vec<RangeInclusive<char>>),
}

impl GlobToken {
    fn matches(&self, c: char) -> bool {
        match self {
            Self::AnyText => true,
            Self::OneOf(ranges) => ranges.iter().any(|range| range.contains(&c)),
            Self::NoneOf(ranges) => !ranges.iter().any(|range| range.contains(&c)),
        }
    }
}

impl Glob {
    /// Parses a pattern.
    ///
    /// # Errors
    /// [`LoadErrorKind::InvalidGlob`] for a `[` without a `]`, and for a reversed range.
    pub fn new(pattern: impl Into<String>) -> Result<Self, LoadError> {
        let pattern = pattern.into();
        match tokens(&pattern) {
            Ok(tokens) => Ok(Self { pattern, tokens }),
            Err(reason) => Err(LoadErrorKind::InvalidGlob { pattern, reason }.into()),
        }
    }

    /// The pattern as given.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Whether the whole name matches. Takes time proportional to the product of both lengths at most.
    pub fn matches(&self, name: &str) -> bool {
        let (mut tokens, mut chars) = (&*self.tokens, name.chars());
        // The tokens after the last star, and where in the name they were tried. Earlier stars need no
        // retry: the last one can match whatever they could.
        let mut tried: Option<(&[GlobToken], Chars<'_>)> = None;
        loop {
            match (tokens, chars.clone().next()) {
                ([GlobToken::AnyText, rest @ ..], _) => {
                    tokens = rest;
                    tried = Some((rest, chars.clone()));
                }
                ([token, rest @ ..], Some(c)) if token.matches(c) => {
                    tokens = rest;
                    chars.next();
                }
                // A retry has fewer characters for the same tokens.
                (rest, None) => return rest.is_empty(),
                _ => {
                    let Some((after_star, start)) = &mut tried else {
                        return false;
                    };
                    start.next();
                    (tokens, chars) = (*after_star, start.clone());
                }
            }
        }
    }
}

fn tokens(pattern: &str) -> Result<Vec<GlobToken>, &'static str> {
    let mut tokens = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        tokens.push(match c {
            '*' => GlobToken::AnyText,
            '?' => GlobToken::NoneOf(Vec::new()),
            '[' => class(&mut chars)?,
            literal => GlobToken::OneOf(vec![literal..=literal]),
        });
    }
    Ok(tokens)
}

/// Parses a class after its `[`. A leading `]` is part of the class.
fn class(chars: &mut Chars<'_>) -> Result<GlobToken, &'static str> {
    let mut token: fn(_) -> _ = GlobToken::OneOf;
    if chars.as_str().starts_with(['!', '^']) {
        chars.next();
        token = GlobToken::NoneOf;
    }
    let mut ranges = Vec::new();
    loop {
        let low = chars.next().ok_or("[ has no ]")?;
        if low == ']' && !ranges.is_empty() {
            return Ok(token(ranges));
        }
        // A `-` right before the `]` is literal.
        let mut ahead = chars.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) if high != ']' => {
                *chars = ahead;
                high
            }
            _ => low,
        };
        if low > high {
            return Err("a range is reversed");
        }
        ranges.push(low..=high);
    }
}

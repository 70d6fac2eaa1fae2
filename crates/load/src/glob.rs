//! Patterns of names.

use super::{Fault, LoadError};

/// A pattern of names, as in a shell: `*` is anything, also nothing and also dots; `?` is one
/// character; `[abc]`, `[a-z]` is one of these, `[!abc]` one of the others. There are no escapes:
/// `[*]` is a star.
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
    tokens: Vec<Token>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Token {
    /// `*`.
    Run,
    /// `?`.
    Any,
    One(char),
    /// `[…]`: ranges with both ends.
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Token {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Run | Self::Any => true,
            Self::One(one) => *one == c,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

impl Glob {
    /// Understand a pattern.
    ///
    /// # Errors
    ///
    /// [`Fault::BadGlob`] for a `[` without its `]`, and for a range that runs backwards.
    pub fn new(pattern: impl Into<String>) -> Result<Self, LoadError> {
        let pattern = pattern.into();
        match tokens(&pattern) {
            Ok(tokens) => Ok(Self { pattern, tokens }),
            Err(reason) => Err(LoadError::from(Fault::BadGlob { pattern, reason })),
        }
    }

    /// The pattern, as it was written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Whether a name is of the pattern, as a whole. Takes at most the product of both lengths.
    pub fn matches(&self, name: &str) -> bool {
        let (mut token, mut rest) = (0, name);
        // The last star, and what was left when it took nothing more than it has to.
        let mut retry: Option<(usize, &str)> = None;
        loop {
            let next = rest.chars().next();
            match (self.tokens.get(token), next) {
                (None, None) => return true,
                (Some(Token::Run), _) => {
                    token += 1;
                    retry = Some((token, rest));
                    continue;
                }
                (Some(other), Some(c)) if other.takes(c) => {
                    token += 1;
                    rest = &rest[c.len_utf8()..];
                    continue;
                }
                _ => {}
            }
            // A star that came earlier need not be asked: the last one can take all that it could.
            let Some((behind, left)) = retry else {
                return false;
            };
            let Some(c) = left.chars().next() else {
                return false;
            };
            (token, rest) = (behind, &left[c.len_utf8()..]);
            retry = Some((token, rest));
        }
    }
}

fn tokens(pattern: &str) -> Result<Vec<Token>, &'static str> {
    let mut tokens = Vec::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        tokens.push(match c {
            '*' => Token::Run,
            '?' => Token::Any,
            '[' => {
                let (class, behind) = class(rest.as_str())?;
                rest = behind.chars();
                class
            }
            one => Token::One(one),
        });
    }
    Ok(tokens)
}

/// The class whose text, without `[`, the text begins with; and what is behind it. A `]` that comes
/// first is one of the class.
fn class(text: &str) -> Result<(Token, &str), &'static str> {
    let inner = text.strip_prefix(['!', '^']);
    let (negated, text) = (inner.is_some(), inner.unwrap_or(text));
    let mut ranges = Vec::new();
    let mut chars = text.chars();
    loop {
        let low = chars.next().ok_or("[ has no ]")?;
        if low == ']' && !ranges.is_empty() {
            return Ok((Token::Class { negated, ranges }, chars.as_str()));
        }
        // A `-` is itself in front of the `]`.
        let mut ahead = chars.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) if high != ']' => {
                chars = ahead;
                high
            }
            _ => low,
        };
        if low > high {
            return Err("a range runs backwards");
        }
        ranges.push((low, high));
    }
}

//! Parses the Python dict of an npy header: `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
//! Accepts only the small part of Python's syntax that numpy writes.

use super::{HeaderError, NpyError};
use crate::LoadErrorKind;

pub(super) struct NpyDict<'a> {
    pub(super) descr: NpyDescr<'a>,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<u64>,
}

/// Element type.
pub(super) enum NpyDescr<'a> {
    /// Such as `<f4`.
    Plain(&'a str),
    /// A list of fields, or a subarray.
    Structured,
}

pub(super) fn parse(text: &str, dims_max: usize) -> Result<NpyDict<'_>, LoadErrorKind> {
    DictParser { text, at: 0 }.dict(dims_max)
}

struct DictParser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> DictParser<'a> {
    fn dict(mut self, dims_max: usize) -> Result<NpyDict<'a>, LoadErrorKind> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect("{")?;
        while !self.take("}") {
            let key_at = self.at;
            let key = self.string()?;
            self.expect(":")?;
            let repeated = match key {
                "descr" => descr.replace(self.descr()?).is_some(),
                "fortran_order" => fortran_order.replace(self.bool()?).is_some(),
                "shape" => shape.replace(self.shape(dims_max)?).is_some(),
                _ => {
                    self.at = key_at;
                    return Err(self.expected("'descr', 'fortran_order' or 'shape'").into());
                }
            };
            if repeated {
                return Err(LoadErrorKind::Header(HeaderError::DuplicateKey {
                    key: key.to_owned(),
                }));
            }
            if matches!(descr, Some(NpyDescr::Structured)) {
                // The rest cannot be parsed without parsing the fields, and would not be used.
                return Err(NpyError::Structured.into());
            }
            if !self.take(",") && !self.rest().starts_with('}') {
                return Err(self.expected(", or }").into());
            }
        }
        if !self.rest().is_empty() {
            return Err(self.expected("nothing after }").into());
        }
        Ok(NpyDict {
            descr: descr.ok_or(HeaderError::MissingField { field: "descr" })?,
            fortran_order: fortran_order.ok_or(HeaderError::MissingField {
                field: "fortran_order",
            })?,
            shape: shape.ok_or(HeaderError::MissingField { field: "shape" })?,
        })
    }

    fn descr(&mut self) -> Result<NpyDescr<'a>, NpyError> {
        match self.rest().starts_with(['[', '(']) {
            true => Ok(NpyDescr::Structured),
            false => self.string().map(NpyDescr::Plain),
        }
    }

    fn bool(&mut self) -> Result<bool, NpyError> {
        if self.take("True") {
            Ok(true)
        } else if self.take("False") {
            Ok(false)
        } else {
            Err(self.expected("True or False"))
        }
    }

    /// A tuple of numbers. Python 2 wrote an L after long ones.
    fn shape(&mut self, dims_max: usize) -> Result<Vec<u64>, LoadErrorKind> {
        self.expect("(")?;
        let mut shape = Vec::new();
        while !self.take(")") {
            if shape.len() == dims_max {
                return Err(LoadErrorKind::Header(HeaderError::TooManyDims {
                    dims: dims_max + 1,
                    limit: dims_max,
                }));
            }
            shape.push(self.number()?);
            let comma = self.take(",");
            // `(3)` is a number in Python, not a tuple.
            if !comma && (shape.len() == 1 || !self.rest().starts_with(')')) {
                return Err(self.expected(", or )").into());
            }
        }
        Ok(shape)
    }

    fn number(&mut self) -> Result<u64, NpyError> {
        let rest = self.rest();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let Ok(number) = rest[..digits].parse() else {
            return Err(self.expected("a number that fits in 64 bits"));
        };
        self.at += digits;
        self.take("L");
        Ok(number)
    }

    /// A string without escapes, in either kind of quotes.
    fn string(&mut self) -> Result<&'a str, NpyError> {
        let rest = self.rest();
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let inner = quote.and_then(|quote| rest[1..].split_once(quote));
        match inner {
            Some((inner, _)) if !inner.contains(['\\', '\n']) => {
                self.at += inner.len() + 2;
                Ok(inner)
            }
            _ => Err(self.expected("a string")),
        }
    }

    /// Skips white space, and returns the rest of the text.
    fn rest(&mut self) -> &'a str {
        let rest = self.text[self.at..].trim_start_matches([' ', '\t', '\n', '\r']);
        self.at = self.text.len() - rest.len();
        rest
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn expect(&mut self, word: &'static str) -> Result<(), NpyError> {
        match self.take(word) {
            true => Ok(()),
            false => Err(self.expected(word)),
        }
    }

    fn expected(&self, expected: &'static str) -> NpyError {
        NpyError::Header {
            at_bytes: self.at,
            expected,
        }
    }
}

//! The dictionary in an npy header: `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
//! A small part of Python's syntax is enough to read what numpy writes, and is all that is read.

use super::NpyFault;
use crate::{Fault, HeaderFault};

/// What the dictionary holds.
pub(super) struct Dict<'a> {
    pub(super) descr: Descr<'a>,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<u64>,
}

/// How the elements are described.
pub(super) enum Descr<'a> {
    /// By a word.
    Plain(&'a str),
    /// By a list of fields, or an element that is an array itself.
    Structured,
}

/// Read the dictionary. A shape has at most `dims_max` dimensions.
pub(super) fn parse(text: &str, dims_max: usize) -> Result<Dict<'_>, Fault> {
    Reader { text, at: 0 }.dict(dims_max)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn dict(mut self, dims_max: usize) -> Result<Dict<'a>, Fault> {
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
                    return Err(self.wrong("'descr', 'fortran_order' or 'shape'").into());
                }
            };
            if repeated {
                return Err(Fault::Header(HeaderFault::DuplicateKey {
                    key: key.to_owned(),
                }));
            }
            if matches!(descr, Some(Descr::Structured)) {
                // What follows cannot be read without reading the fields, and would not be used.
                return Err(NpyFault::Structured.into());
            }
            if !self.take(",") && !self.rest().starts_with('}') {
                return Err(self.wrong(", or }").into());
            }
        }
        if !self.rest().is_empty() {
            return Err(self.wrong("nothing behind }").into());
        }
        Ok(Dict {
            descr: descr.ok_or(HeaderFault::MissingField { field: "descr" })?,
            fortran_order: fortran_order.ok_or(HeaderFault::MissingField {
                field: "fortran_order",
            })?,
            shape: shape.ok_or(HeaderFault::MissingField { field: "shape" })?,
        })
    }

    fn descr(&mut self) -> Result<Descr<'a>, NpyFault> {
        match self.rest().starts_with(['[', '(']) {
            true => Ok(Descr::Structured),
            false => self.string().map(Descr::Plain),
        }
    }

    fn bool(&mut self) -> Result<bool, NpyFault> {
        if self.take("True") {
            Ok(true)
        } else if self.take("False") {
            Ok(false)
        } else {
            Err(self.wrong("True or False"))
        }
    }

    /// A tuple of numbers. Python 2 wrote an L behind long ones.
    fn shape(&mut self, dims_max: usize) -> Result<Vec<u64>, Fault> {
        self.expect("(")?;
        let mut shape = Vec::new();
        while !self.take(")") {
            if shape.len() == dims_max {
                return Err(Fault::Header(HeaderFault::TooManyDims {
                    dims: dims_max + 1,
                    limit: dims_max,
                }));
            }
            shape.push(self.number()?);
            let comma = self.take(",");
            // `(3)` is a number in Python, not a tuple.
            if !comma && (shape.len() == 1 || !self.rest().starts_with(')')) {
                return Err(self.wrong(", or )").into());
            }
        }
        Ok(shape)
    }

    fn number(&mut self) -> Result<u64, NpyFault> {
        let rest = self.rest();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let Ok(number) = rest[..digits].parse() else {
            return Err(self.wrong("a number that fits 64 bits"));
        };
        self.at += digits;
        self.take("L");
        Ok(number)
    }

    /// A string without escapes, in either kind of quotes.
    fn string(&mut self) -> Result<&'a str, NpyFault> {
        let rest = self.rest();
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let inner = quote.and_then(|quote| rest[1..].split_once(quote));
        match inner {
            Some((inner, _)) if !inner.contains(['\\', '\n']) => {
                self.at += inner.len() + 2;
                Ok(inner)
            }
            _ => Err(self.wrong("a string")),
        }
    }

    /// What is left, without the white space before it.
    fn rest(&mut self) -> &'a str {
        let rest = self.text[self.at..].trim_start_matches([' ', '\t', '\n', '\r']);
        self.at = self.text.len() - rest.len();
        rest
    }

    fn take(&mut self, word: &str) -> bool {
        let there = self.rest().starts_with(word);
        if there {
            self.at += word.len();
        }
        there
    }

    fn expect(&mut self, word: &'static str) -> Result<(), NpyFault> {
        match self.take(word) {
            true => Ok(()),
            false => Err(self.wrong(word)),
        }
    }

    fn wrong(&self, expected: &'static str) -> NpyFault {
        NpyFault::Header {
            at_bytes: self.at,
            expected,
        }
    }
}

//! JSON objects whose keys occur once. `serde_json` takes the last of two, which lets a file mean
//! different things to different readers.
//!
//! Entries are handed on one by one, so that an object of a million bad ones ends at the first.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::HeaderFault;
use crate::LoadError;

/// Hand on each key of an object, with its value as it stands in the text. Keys may repeat.
pub(super) fn each<'a>(
    text: &'a str,
    mut take: impl FnMut(String, &'a RawValue) -> Result<(), LoadError>,
) -> Result<(), LoadError> {
    if !is_object(text) {
        // Say that it is no JSON at all, if so.
        return Err(LoadError::from(
            match serde_json::from_str::<&RawValue>(text) {
                Ok(_) => HeaderFault::NotAnObject,
                Err(error) => not_json(&error),
            },
        ));
    }
    let mut refused = None;
    let entries = Entries {
        take: &mut take,
        refused: &mut refused,
    };
    let mut parser = serde_json::Deserializer::from_str(text);
    let parsed = parser.deserialize_map(entries).and_then(|()| parser.end());
    match (refused, parsed) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(LoadError::from(not_json(&error))),
        (None, Ok(())) => Ok(()),
    }
}

/// The values of some keys of an object; other keys are left alone.
pub(super) fn fields<'a, const N: usize>(
    text: &'a str,
    keys: [&str; N],
) -> Result<[Option<&'a RawValue>; N], LoadError> {
    let mut values = [None; N];
    each(text, |key, value| {
        match keys.iter().position(|known| *known == key) {
            Some(at) if values[at].is_some() => {
                Err(LoadError::from(HeaderFault::DuplicateKey { key }))
            }
            Some(at) => {
                values[at] = Some(value);
                Ok(())
            }
            None => Ok(()),
        }
    })?;
    Ok(values)
}

/// A value of type `T`.
pub(super) fn value<'a, T: Deserialize<'a>>(
    field: &'static str,
    raw: &'a RawValue,
) -> Result<T, HeaderFault> {
    serde_json::from_str(raw.get()).map_err(|error| HeaderFault::BadField {
        field,
        reason: short(&error),
    })
}

pub(super) fn is_object(text: &str) -> bool {
    text.trim_start_matches([' ', '\n', '\r', '\t'])
        .starts_with('{')
}

fn not_json(error: &serde_json::Error) -> HeaderFault {
    HeaderFault::NotJson {
        reason: short(error),
    }
}

/// The parser's words may quote what it read, at any length.
fn short(error: &serde_json::Error) -> String {
    const CHARS_MAX: usize = 200;
    let words = error.to_string();
    match words.char_indices().nth(CHARS_MAX) {
        None => words.escape_debug().to_string(),
        Some((end, _)) => format!("{}…", words[..end].escape_debug()),
    }
}

struct Entries<'f, F> {
    take: &'f mut F,
    refused: &'f mut Option<LoadError>,
}

impl<'de, F> Visitor<'de> for Entries<'_, F>
where
    F: FnMut(String, &'de RawValue) -> Result<(), LoadError>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, value)) = map.next_entry()? {
            if let Err(error) = (self.take)(key, value) {
                *self.refused = Some(error);
                return Err(A::Error::custom("refused"));
            }
        }
        Ok(())
    }
}

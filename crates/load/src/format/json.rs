//! JSON objects with unique keys. `serde_json` takes the last of two equal keys, so one file could mean
//! different things to different readers.
//!
//! Entries are passed on one by one, so an object with a million invalid ones ends at the first.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::HeaderError;
use crate::LoadError;

/// Calls `take` for each entry of an object. Does not check for duplicate keys.
pub(super) fn for_each_entry<'a>(
    text: &'a str,
    mut take: impl FnMut(String, &'a RawValue) -> Result<(), LoadError>,
) -> Result<(), LoadError> {
    if !is_object(text) {
        return Err(match serde_json::from_str::<&RawValue>(text) {
            Ok(_) => HeaderError::NotAnObject.into(),
            Err(error) => not_json(&error),
        });
    }
    let mut refused = None;
    let visitor = EntryVisitor {
        take: &mut take,
        refused: &mut refused,
    };
    let mut parser = serde_json::Deserializer::from_str(text);
    let parsed = parser.deserialize_map(visitor).and_then(|()| parser.end());
    match (refused, parsed) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(not_json(&error)),
        (None, Ok(())) => Ok(()),
    }
}

/// The values of some keys of an object; other keys are ignored.
pub(super) fn fields<'a, const N: usize>(
    text: &'a str,
    keys: [&str; N],
) -> Result<[Option<&'a RawValue>; N], LoadError> {
    let mut values = [None; N];
    for_each_entry(text, |key, value| {
        let Some(at) = keys.iter().position(|known| *known == key) else {
            return Ok(());
        };
        match values[at].replace(value) {
            Some(_) => Err(HeaderError::DuplicateKey { key }.into()),
            None => Ok(()),
        }
    })?;
    Ok(values)
}

/// An object as a map, with `text` of each value.
pub(super) fn string_map(
    object: &str,
    text: impl Fn(&str, &RawValue) -> Result<String, HeaderError>,
) -> Result<BTreeMap<String, String>, LoadError> {
    let mut map = BTreeMap::new();
    for_each_entry(object, |key, raw| {
        let text = text(&key, raw)?;
        match map.insert(key.clone(), text) {
            Some(_) => Err(HeaderError::DuplicateKey { key }.into()),
            None => Ok(()),
        }
    })?;
    Ok(map)
}

/// Parses the value of a field.
pub(super) fn value<'a, T: Deserialize<'a>>(
    field: &'static str,
    raw: &'a RawValue,
) -> Result<T, HeaderError> {
    serde_json::from_str(raw.get()).map_err(|error| HeaderError::InvalidField {
        field,
        reason: truncated(&error),
    })
}

/// The text of a field that must be an object.
pub(super) fn object<'a>(field: &'static str, raw: &'a RawValue) -> Result<&'a str, HeaderError> {
    match is_object(raw.get()) {
        true => Ok(raw.get()),
        false => Err(HeaderError::InvalidField {
            field,
            reason: "not an object".to_owned(),
        }),
    }
}

pub(super) fn is_object(text: &str) -> bool {
    text.trim_start_matches([' ', '\n', '\r', '\t'])
        .starts_with('{')
}

fn not_json(error: &serde_json::Error) -> LoadError {
    let reason = truncated(error);
    HeaderError::NotJson { reason }.into()
}

/// The parser's message may quote any amount of the input.
fn truncated(error: &serde_json::Error) -> String {
    const CHARS_MAX: usize = 200;
    let message = error.to_string();
    match message.char_indices().nth(CHARS_MAX) {
        None => message.escape_debug().to_string(),
        Some((end, _)) => format!("{}…", message[..end].escape_debug()),
    }
}

struct EntryVisitor<'f, F> {
    take: &'f mut F,
    refused: &'f mut Option<LoadError>,
}

impl<'de, F> Visitor<'de> for EntryVisitor<'_, F>
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

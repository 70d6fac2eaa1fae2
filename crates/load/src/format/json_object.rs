//! JSON objects with unique keys: `serde_json` takes the last of two equal keys, other readers the first.
//! Entries are passed on one by one, so an object with a million invalid ones ends at the first.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::truncated;
use crate::{HeaderError, LoadError};

/// Calls `take` for each entry of an object. Does not check for duplicate keys.
pub(super) fn for_each_entry<'a>(
    text: &'a str,
    take: impl FnMut(String, &'a RawValue) -> Result<(), LoadError>,
) -> Result<(), LoadError> {
    let not_json = |error: serde_json::Error| {
        let reason = message(&error);
        HeaderError::NotJson { reason }
    };
    if !is_object(text) {
        serde_json::from_str::<&RawValue>(text).map_err(not_json)?;
        return Err(HeaderError::NotAnObject.into());
    }
    let refused = None;
    let mut visitor = EntryVisitor { take, refused };
    let mut parser = serde_json::Deserializer::from_str(text);
    let parsed = parser.deserialize_map(&mut visitor);
    let parsed = parsed.and_then(|()| parser.end());
    match visitor.refused {
        Some(error) => Err(error),
        None => Ok(parsed.map_err(not_json)?),
    }
}

/// The values of some keys of an object; other keys are ignored.
pub(super) fn fields<'a, const N: usize>(
    text: &'a str,
    keys: [&str; N],
) -> Result<[Option<&'a RawValue>; N], LoadError> {
    let mut values = [None; N];
    for_each_entry(text, |key, value| {
        match keys.iter().position(|known| *known == key) {
            Some(at) if values[at].replace(value).is_some() => {
                Err(HeaderError::DuplicateKey { key }.into())
            }
            _ => Ok(()),
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

pub(super) fn value<'a, T: Deserialize<'a>>(
    field: &'static str,
    raw: &'a RawValue,
) -> Result<T, HeaderError> {
    serde_json::from_str(raw.get()).map_err(|error| HeaderError::InvalidField {
        field,
        reason: message(&error),
    })
}

/// The text of a field that must be an object.
pub(super) fn object<'a>(field: &'static str, raw: &'a RawValue) -> Result<&'a str, HeaderError> {
    if !is_object(raw.get()) {
        let reason = "not an object".to_owned();
        return Err(HeaderError::InvalidField { field, reason });
    }
    Ok(raw.get())
}

pub(super) fn is_object(text: &str) -> bool {
    text.trim_ascii_start().starts_with('{')
}

/// The parser's message, truncated: it may quote any amount of the input.
fn message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let (start, more) = truncated(&message);
    format!("{}{more}", start.escape_debug())
}

struct EntryVisitor<F> {
    take: F,
    refused: Option<LoadError>,
}

impl<'de, F> Visitor<'de> for &mut EntryVisitor<F>
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
                self.refused = Some(error);
                return Err(A::Error::custom("refused"));
            }
        }
        Ok(())
    }
}

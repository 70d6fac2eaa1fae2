//! One of several values, by name.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A parser of values by name, without a second enum for clap. `text` is a value's name and help text, such
/// as `auto: Whatever is faster`.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    values: &'static [T],
    text: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let split = move |value: &T| text(*value).split_once(": ").expect("a name and a text");
    let possible = values.iter().map(split);
    let possible = possible.map(|(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(possible).map(move |chosen| {
        let chosen = values.iter().find(|value| split(value).0 == chosen);
        *chosen.expect("clap accepts only these names")
    })
}

//! Flags that take one of several names, without a second enum for clap.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A parser of values by name, each with its help text.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    values: &'static [(&'static str, T, &'static str)],
) -> impl TypedValueParser<Value = T> {
    let possible = values
        .iter()
        .map(|(name, _, help)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(possible).map(|chosen| {
        let mut values = values.iter();
        let (_, value, _) = values
            .find(|(name, ..)| *name == chosen)
            .expect("clap accepts only these names");
        *value
    })
}

//! Reports as JSON.

use serde::Serialize;

/// Version of the JSON output. It increases when a field changes its meaning or is removed, not when
/// one is added.
pub const SCHEMA_VERSION: u32 = 1;

/// [`pretty_json`] with the schema version as the first field.
pub(crate) fn versioned_json(report: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Versioned<'a, T> {
        schema: u32,
        #[serde(flatten)]
        report: &'a T,
    }
    let schema = SCHEMA_VERSION;
    pretty_json(&Versioned { schema, report })
}

/// Indented JSON with a final newline.
pub(crate) fn pretty_json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("plain data serializes") + "\n"
}

//! Reports as JSON.

use serde::Serialize;

use crate::Environment;

/// Version of the JSON output. It increases when a field changes its meaning or is removed, not when
/// one is added.
pub const SCHEMA_VERSION: u32 = 1;

/// [`pretty_json`] with the schema version and the environment as the first fields.
pub(crate) fn versioned_json(report: &impl Serialize, environment: &Environment) -> String {
    #[derive(Serialize)]
    struct Versioned<'a, T> {
        schema: u32,
        environment: &'a Environment,
        #[serde(flatten)]
        report: &'a T,
    }
    let schema = SCHEMA_VERSION;
    pretty_json(&Versioned {
        schema,
        environment,
        report,
    })
}

/// Indented JSON with a final newline.
pub(crate) fn pretty_json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("plain data serializes") + "\n"
}

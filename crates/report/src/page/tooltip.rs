//! Details shown for the part of a picture under the pointer.

use serde::Serialize;

use crate::format::sanitize;

/// A heading and a small table.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Tooltip {
    pub(crate) title: String,
    pub(crate) rows: Vec<TooltipRow>,
}

/// One line of a [`Tooltip`].
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct TooltipRow {
    /// CSS class of its colour.
    pub(crate) colour: Option<&'static str>,
    pub(crate) name: String,
    pub(crate) cells: Vec<String>,
}

impl TooltipRow {
    pub(crate) fn plain(name: &str, value: impl Into<String>) -> Self {
        Self {
            colour: None,
            name: name.to_owned(),
            cells: vec![value.into()],
        }
    }
}

impl Tooltip {
    /// As plain lines, for viewers that run no scripts.
    pub(crate) fn text(&self) -> String {
        let rows = self.rows.iter().map(|row| {
            let cells = row.cells.join("  ");
            format!("\n{}: {}", sanitize(&row.name), sanitize(&cells))
        });
        std::iter::once(sanitize(&self.title)).chain(rows).collect()
    }
}

/// The tooltips of a page, as `tooltips.js` reads them.
pub(super) fn to_json(tooltips: &[Tooltip]) -> String {
    #[derive(Serialize)]
    struct Data<'a> {
        tips: &'a [Tooltip],
    }
    serde_json::to_string(&Data { tips: tooltips }).expect("plain data serializes")
}

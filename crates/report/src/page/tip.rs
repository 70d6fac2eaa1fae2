//! What is shown of a part of a picture that is pointed at.

use serde::Serialize;

use crate::timeline::layout::words::clean;

/// A heading and a small table.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Tip {
    pub(crate) title: String,
    pub(crate) rows: Vec<TipRow>,
}

/// One line of a [`Tip`].
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct TipRow {
    /// Class of its colour.
    pub(crate) look: Option<&'static str>,
    pub(crate) name: String,
    pub(crate) cells: Vec<String>,
}

impl TipRow {
    /// A name and what belongs to it.
    pub(crate) fn plain(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            look: None,
            name: name.into(),
            cells: vec![value.into()],
        }
    }
}

impl Tip {
    /// As plain lines, for viewers that run no script.
    pub(crate) fn text(&self) -> String {
        let rows = self.rows.iter().map(|row| {
            let cells = row.cells.join("  ");
            format!("\n{}: {}", clean(&row.name), clean(&cells))
        });
        std::iter::once(clean(&self.title)).chain(rows).collect()
    }
}

/// The tips of a page, as the script `tips.js` takes them.
pub(crate) fn tips_json(tips: &[Tip]) -> String {
    #[derive(Serialize)]
    struct Data<'a> {
        tips: &'a [Tip],
    }
    serde_json::to_string(&Data { tips }).expect("plain data becomes JSON")
}

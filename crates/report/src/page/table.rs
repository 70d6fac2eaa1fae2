//! Figures as a table, for those who see no picture, and for those who want the digits.

use crate::markup::escape;

/// A table with a heading, a row of column names, and the name of each row in its first column.
pub(crate) struct Table<'a> {
    /// Stands in the page once.
    pub(crate) id: &'a str,
    /// Plain text above the table.
    pub(crate) caption: &'a str,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<(String, Vec<Cell>)>,
}

/// Plain text, and smaller text below it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) below: String,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            below: String::new(),
        }
    }
}

impl Table<'_> {
    /// Scrolls inside itself where the window is too narrow.
    pub(crate) fn html(&self) -> String {
        let id = self.id;
        let mut html = format!(
            "<p id=\"{id}\" class=\"caption dim\">{}</p>\n\
             <div class=\"table\" tabindex=\"0\" role=\"region\" aria-labelledby=\"{id}\">\n\
             <table aria-labelledby=\"{id}\">\n<thead><tr>",
            escape(self.caption)
        );
        for column in &self.columns {
            html.push_str(&format!("<th scope=\"col\">{}</th>", escape(column)));
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        for (name, cells) in &self.rows {
            html.push_str(&format!("<tr><th scope=\"row\">{}</th>", escape(name)));
            html.extend(cells.iter().map(Cell::html));
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody>\n</table>\n</div>\n");
        html
    }
}

impl Cell {
    fn html(&self) -> String {
        let text = escape(&self.text);
        match self.below.as_str() {
            "" => format!("<td>{text}</td>"),
            below => format!("<td>{text}<small>{}</small></td>", escape(below)),
        }
    }
}

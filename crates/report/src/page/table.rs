//! Figures as an HTML table: exact digits, and an alternative to the pictures.

use crate::markup::escape;

/// A captioned table; the first column names the rows.
pub(crate) struct HtmlTable<'a> {
    /// Unique in the page.
    pub(crate) id: &'a str,
    /// Plain text above the table.
    pub(crate) caption: &'a str,
    pub(crate) columns: Vec<&'a str>,
    pub(crate) rows: Vec<(String, Vec<TableCell>)>,
}

/// Plain text, and smaller text below it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct TableCell {
    pub(crate) text: String,
    pub(crate) below: String,
}

impl<T: Into<String>> From<T> for TableCell {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            below: String::new(),
        }
    }
}

impl HtmlTable<'_> {
    /// Scrolls on its own if the window is too narrow.
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
            html.extend(cells.iter().map(TableCell::html));
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody>\n</table>\n</div>\n");
        html
    }
}

impl TableCell {
    fn html(&self) -> String {
        let text = escape(&self.text);
        match self.below.as_str() {
            "" => format!("<td>{text}</td>"),
            below => format!("<td>{text}<small>{}</small></td>", escape(below)),
        }
    }
}

//! What the reader should know.

use crate::markup::escape;

/// A list; nothing where there is nothing to know.
pub(crate) fn notes(notes: &[String]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let item = |note: &String| format!("<li>{}</li>\n", escape(note));
    let items: String = notes.iter().map(item).collect();
    format!("<ul class=\"notes\">\n{items}</ul>\n")
}

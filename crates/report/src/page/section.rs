//! A picture of a page.

use crate::markup::escape;

/// A heading, what is said beside it, and drawings of which the window's width chooses one. `label`
/// says in words what they show.
pub(crate) fn section(heading: &str, aside: &str, label: &str, drawings: &str) -> String {
    format!(
        "<section>\n<h2>{} <span class=\"dim\">{}</span></h2>\n\
         <figure tabindex=\"0\" role=\"group\" aria-label=\"{}. Arrow keys go through the figures.\">\n\
         {drawings}</figure>\n</section>\n",
        escape(heading),
        escape(aside),
        escape(label)
    )
}

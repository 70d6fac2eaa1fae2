//! A comparison as a picture.

use super::Compare;
use crate::plot::picture::Stack;

impl Compare {
    /// A picture that stands alone: no script, no font, no other file. Bars of each kind of memory in
    /// both directions, the link's limit, what getting the memory costs, and below them the advice
    /// and what the reader should know.
    /// Follows the viewer's choice of a light or a dark look.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let title = self.title();
        let mut stack = Stack::new(&title, &self.origin);
        stack.drawing("", &self.chart().draw(&Stack::CANVAS));
        for sentence in self.advice() {
            stack.text("", &sentence);
        }
        stack.text("dim", &self.about());
        for note in &self.notes {
            stack.text("dim", note);
        }
        stack.finish()
    }
}

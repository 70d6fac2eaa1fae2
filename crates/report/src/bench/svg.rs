//! A sweep as a picture.

use super::Bench;
use super::plots::{TITLE, heading};
use crate::plot::Scale;
use crate::plot::picture::Stack;

impl Bench {
    /// A picture that stands alone: no script, no font, no other file. Bandwidth over size, a plot a
    /// direction, and what the smallest copy takes. Follows the viewer's choice of a light or a dark
    /// look.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let mut stack = Stack::new(TITLE, &self.origin);
        stack.text("dim", &self.about());
        for warning in self.warnings() {
            stack.text("", &warning);
        }
        for route in self.routes() {
            let drawing = self.plot(route, Scale::Linear, 8).draw(&Stack::CANVAS);
            stack.drawing(&heading(route.words()), &drawing);
        }
        if let Some(chart) = self.latency_chart() {
            let drawing = chart.draw(&Stack::CANVAS);
            stack.drawing(&self.latency_heading(), &drawing);
        }
        for note in &self.notes {
            stack.text("dim", note);
        }
        stack.finish()
    }
}

//! A chart as a picture.

mod bars;
mod head;
mod page;
mod style;

use std::io;

use self::page::Page;
use super::{Chart, Exporter};

/// A picture that stands alone: no script, no font, no other file. Follows the viewer's choice of a
/// light or a dark look. Spans that overlap are drawn below each other; spans too short to be told
/// apart are drawn as one, and its tooltip says how many they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Svg;

impl Exporter for Svg {
    fn export(&self, chart: &Chart, out: &mut dyn io::Write) -> io::Result<()> {
        Page::new(chart).write(out)
    }
}

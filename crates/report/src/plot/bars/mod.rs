//! Values side by side, as horizontal bars in groups.

mod columns;
mod draw;

use super::axis::Axis;
use super::hue::Hue;
use crate::Origin;
use crate::page::Tip;

/// Groups of bars over a common axis that begins at 0.
pub(crate) struct BarChart<'a> {
    pub(crate) origin: &'a Origin,
    pub(crate) axis: Axis,
    /// Unit of the values, where the marks do not say it.
    pub(crate) unit: &'a str,
    /// What the groups' notes are about.
    pub(crate) note_title: &'a str,
    pub(crate) groups: Vec<BarGroup>,
    pub(crate) limit: Option<Limit>,
}

/// Bars under one name.
pub(crate) struct BarGroup {
    pub(crate) name: String,
    /// Shown beside the group; may be empty.
    pub(crate) note: String,
    pub(crate) bars: Vec<Bar>,
}

/// A bar of one or several parts behind each other.
pub(crate) struct Bar {
    /// Tells it from the others of its group.
    pub(crate) caption: String,
    pub(crate) parts: Vec<Part>,
    /// Stands at the bar's end.
    pub(crate) label: String,
    pub(crate) tip: Tip,
}

/// A piece of a bar.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Part {
    pub(crate) value: f64,
    pub(crate) hue: Hue,
    /// The lighter shade.
    pub(crate) soft: bool,
}

/// A line across all bars.
pub(crate) struct Limit {
    pub(crate) at: f64,
    pub(crate) label: String,
}

impl BarChart<'_> {
    /// All tips in the order of the bars.
    pub(crate) fn tips(&self) -> Vec<Tip> {
        self.bars().map(|bar| bar.tip.clone()).collect()
    }

    fn bars(&self) -> impl Iterator<Item = &Bar> {
        self.groups.iter().flat_map(|group| &group.bars)
    }
}

impl Bar {
    fn total(&self) -> f64 {
        self.parts.iter().map(|part| part.value).sum()
    }
}

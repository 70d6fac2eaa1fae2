//! Where bars, names and notes stand.

use super::{Bar, BarChart, BarGroup};
use crate::Origin;
use crate::markup::text_px;
use crate::plot::axis::Axis;
use crate::plot::canvas::Canvas;

pub(super) const BAR_PX: f64 = 21.0;
pub(super) const BAR_GAP_PX: f64 = 3.0;
pub(super) const FONT_PX: f64 = 13.0;
const GROUP_GAP_PX: f64 = 15.0;

/// From left to right, and where it begins.
pub(super) struct Columns {
    pub(super) caption_end_px: f64,
    pub(super) left_px: f64,
    pub(super) right_px: f64,
    pub(super) note_end_px: f64,
    pub(super) top_px: f64,
    pub(super) has_notes: bool,
}

impl Columns {
    pub(super) fn x_px(&self, axis: &Axis, value: f64) -> f64 {
        self.left_px + axis.share(value) * (self.right_px - self.left_px)
    }
}

impl BarChart<'_> {
    pub(super) fn columns(&self, canvas: &Canvas) -> Columns {
        let widest = |texts: &mut dyn Iterator<Item = &str>| {
            texts.map(|text| text_px(text, FONT_PX)).fold(0.0, f64::max)
        };
        let caption_px = widest(&mut self.bars().map(|bar| bar.caption.as_str()));
        let names = &mut self.groups.iter().map(|group| group.name.as_str());
        let name_px = if canvas.narrow {
            0.0
        } else {
            widest(names) * 1.08 + 14.0
        };
        let has_notes = !canvas.narrow && self.groups.iter().any(|group| !group.note.is_empty());
        let note_px = match has_notes {
            true => text_px(self.note_title, FONT_PX) + 14.0,
            false => 0.0,
        };
        // What does not fit into a bar stands behind it.
        let label_px = self
            .bars()
            .map(|bar| self.behind_px(bar))
            .fold(0.0, f64::max);
        let caption_end_px = canvas.left_px + name_px + caption_px;
        let left_px = caption_end_px + if caption_px > 0.0 { 10.0 } else { 0.0 };
        let flagged = !matches!(self.origin, Origin::Measured { .. });
        let mut top_px = 4.0;
        if self.limit.is_some() || has_notes {
            top_px += 26.0;
        }
        if flagged {
            top_px += 28.0;
        }
        Columns {
            caption_end_px,
            left_px,
            right_px: canvas.right_px() - note_px - label_px.max(self.unit_px()),
            note_end_px: canvas.right_px(),
            top_px,
            has_notes,
        }
    }

    /// Room that the last mark takes behind the end of the axis.
    fn unit_px(&self) -> f64 {
        let last = self.axis.ticks.last();
        let mark_px = last.map_or(0.0, |tick| text_px(&tick.label, FONT_PX) / 2.0);
        (mark_px + text_px(self.unit, FONT_PX) + 6.0).max(24.0)
    }

    /// Room that a label takes behind the end of the axis, if it stands behind its bar.
    fn behind_px(&self, bar: &Bar) -> f64 {
        let share = self.axis.share(bar.total());
        match share > 0.6 && bar.parts.len() == 1 {
            true => 0.0,
            false => (text_px(&bar.label, FONT_PX) * 1.1 + 12.0) * share,
        }
    }

    /// What lines down the chart cover: all of it, or the bars only where names stand between them.
    pub(super) fn stretches(&self, canvas: &Canvas, columns: &Columns) -> Vec<(f64, f64)> {
        let mut top_px = columns.top_px;
        let mut stretches = Vec::new();
        for group in &self.groups {
            let end_px = top_px + group.height_px(canvas);
            stretches.push((
                top_px + group.name_px(canvas) - 4.0,
                end_px - GROUP_GAP_PX + 4.0,
            ));
            top_px = end_px;
        }
        match (canvas.narrow, stretches.first(), stretches.last()) {
            (false, Some(first), Some(last)) => vec![(first.0, last.1)],
            _ => stretches,
        }
    }
}

impl BarGroup {
    /// What its name takes above the bars.
    pub(super) fn name_px(&self, canvas: &Canvas) -> f64 {
        if canvas.narrow { 22.0 } else { 0.0 }
    }

    /// With the gap below it.
    pub(super) fn height_px(&self, canvas: &Canvas) -> f64 {
        let bars_px = self.bars.len() as f64 * (BAR_PX + BAR_GAP_PX) - BAR_GAP_PX;
        self.name_px(canvas) + bars_px.max(BAR_PX) + GROUP_GAP_PX
    }
}

//! Bars as SVG.

use super::columns::{BAR_GAP_PX, BAR_PX, Columns, FONT_PX};
use super::{Bar, BarChart, BarGroup, Limit};
use crate::markup::{escape, length, text_px};
use crate::plot::canvas::{Canvas, Drawing, flag};

impl BarChart<'_> {
    pub(crate) fn draw(&self, canvas: &Canvas) -> Drawing {
        let columns = self.columns(canvas);
        let mut svg = flag(self.origin, canvas.left_px, 1.0, canvas.width_px);
        let groups_px: f64 = self
            .groups
            .iter()
            .map(|group| group.height_px(canvas))
            .sum();
        let bottom_px = columns.top_px + groups_px;
        let stretches = self.stretches(canvas, &columns);
        self.draw_axis(&columns, &stretches, bottom_px + 10.0, &mut svg);
        if let Some(limit) = &self.limit {
            self.draw_limit(limit, &columns, &stretches, &mut svg);
        }
        let (mut top_px, mut index) = (columns.top_px, 0);
        for group in &self.groups {
            group.draw_name(self.note_title, canvas, &columns, top_px, &mut svg);
            let mut bar_px = top_px + group.name_px(canvas);
            for bar in &group.bars {
                svg.push_str(&canvas.part("part", index, &bar.tip));
                self.draw_bar(bar, canvas, &columns, bar_px, &mut svg);
                svg.push_str("</g>\n");
                bar_px += BAR_PX + BAR_GAP_PX;
                index += 1;
            }
            top_px += group.height_px(canvas);
        }
        Drawing {
            svg,
            height_px: bottom_px + 26.0,
        }
    }

    fn draw_axis(
        &self,
        columns: &Columns,
        stretches: &[(f64, f64)],
        base_px: f64,
        svg: &mut String,
    ) {
        let base = length(base_px);
        for tick in &self.axis.ticks {
            let x_px = columns.x_px(&self.axis, tick.at);
            svg.push_str(&format!(
                "<path class=\"grid\" d=\"{}\"/>\
                 <text class=\"dim mid\" x=\"{}\" y=\"{base}\">{}</text>\n",
                upright(x_px, stretches),
                length(x_px),
                tick.label
            ));
        }
        if let Some(last) = self.axis.ticks.last() {
            let end_px = columns.x_px(&self.axis, last.at) + text_px(&last.label, FONT_PX) / 2.0;
            svg.push_str(&format!(
                "<text class=\"dim\" x=\"{}\" y=\"{base}\">{}</text>\n",
                length(end_px + 3.0),
                escape(self.unit)
            ));
        }
        if columns.has_notes {
            svg.push_str(&format!(
                "<text class=\"dim end\" x=\"{}\" y=\"{}\">{}</text>\n",
                length(columns.note_end_px),
                length(columns.top_px - 14.0),
                escape(self.note_title)
            ));
        }
    }

    fn draw_limit(
        &self,
        limit: &Limit,
        columns: &Columns,
        stretches: &[(f64, f64)],
        svg: &mut String,
    ) {
        let x_px = columns.x_px(&self.axis, limit.at);
        let half_px = text_px(&limit.label, FONT_PX) / 2.0;
        let middle_px = x_px.min(columns.right_px + 20.0 - half_px).max(half_px);
        svg.push_str(&format!(
            "<path class=\"limit\" d=\"M{x} {}v6{}\"/>\
             <text class=\"mid\" x=\"{}\" y=\"{}\">{}</text>\n",
            length(columns.top_px - 9.0),
            upright(x_px, stretches),
            length(middle_px),
            length(columns.top_px - 14.0),
            escape(&limit.label),
            x = length(x_px),
        ));
    }

    fn draw_bar(
        &self,
        bar: &Bar,
        canvas: &Canvas,
        columns: &Columns,
        top_px: f64,
        svg: &mut String,
    ) {
        let base = length(top_px + BAR_PX / 2.0 + 4.5);
        svg.push_str(&format!(
            "<rect class=\"hit\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\
             <text class=\"dim end\" x=\"{}\" y=\"{base}\">{}</text>",
            length(canvas.left_px),
            length(top_px),
            length(canvas.width_px),
            length(BAR_PX),
            length(columns.caption_end_px),
            escape(&bar.caption)
        ));
        let mut sum = 0.0;
        for part in &bar.parts {
            let start_px = columns.x_px(&self.axis, sum);
            sum += part.value;
            let end_px = columns.x_px(&self.axis, sum);
            svg.push_str(&format!(
                "<rect class=\"bar {}{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                if part.soft { "s" } else { "" },
                part.hue.class(),
                length(start_px),
                length(top_px),
                length((end_px - start_px).max(1.0)),
                length(BAR_PX)
            ));
        }
        let end_px = columns.x_px(&self.axis, sum);
        let label_px = text_px(&bar.label, FONT_PX) * 1.1 + 14.0;
        let label = escape(&bar.label);
        let only = bar.parts.first().filter(|_| bar.parts.len() == 1);
        svg.push_str(&match only {
            Some(part) if end_px - columns.left_px >= label_px => format!(
                "<text class=\"fig end in{}{}\" x=\"{}\" y=\"{base}\">{label}</text>",
                if part.soft { "s" } else { "" },
                part.hue.class(),
                length(end_px - 8.0),
            ),
            _ => format!(
                "<text class=\"fig halo\" x=\"{}\" y=\"{base}\">{label}</text>",
                length(end_px + 7.0)
            ),
        });
    }
}

impl BarGroup {
    /// The name, and the note at the other side.
    fn draw_name(
        &self,
        note_title: &str,
        canvas: &Canvas,
        columns: &Columns,
        top_px: f64,
        svg: &mut String,
    ) {
        let (base_px, note) = if canvas.narrow && !self.note.is_empty() {
            (top_px + 14.0, format!("{note_title}: {}", self.note))
        } else if canvas.narrow {
            (top_px + 14.0, String::new())
        } else {
            (top_px + BAR_PX / 2.0 + 4.5, self.note.clone())
        };
        let base = length(base_px);
        svg.push_str(&format!(
            "<text class=\"fig\" x=\"{}\" y=\"{base}\">{}</text>\
             <text class=\"dim end halo\" x=\"{}\" y=\"{base}\">{}</text>\n",
            length(canvas.left_px),
            escape(&self.name),
            length(columns.note_end_px),
            escape(&note)
        ));
    }
}

/// A line down, in pieces.
fn upright(x_px: f64, stretches: &[(f64, f64)]) -> String {
    let x = length(x_px);
    let piece = |(top_px, bottom_px): &(f64, f64)| {
        format!("M{x} {}V{}", length(*top_px), length(*bottom_px))
    };
    stretches.iter().map(piece).collect()
}

//! Findings as text.

use super::{Doctor, DoctorFinding, DoctorGroup, DoctorStatus};
use crate::Origin;
use crate::text_layout::{display_width, labelled, padded_left, sanitize, wrap};

const BOLD: u8 = 1;

/// Columns of the status, with indent and gap.
const STATUS_COLUMNS: usize = 8;

/// With fewer columns, the observation goes below the name instead of beside it.
const SEEN_COLUMNS_MIN: usize = 24;

/// Width and colours of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DoctorStyle {
    /// Columns of the terminal, clamped to [`DoctorStyle::WIDTH_MIN`] and [`DoctorStyle::WIDTH_MAX`].
    pub width: usize,
    /// Whether to use colours (ANSI escape sequences).
    pub colour: bool,
}

impl DoctorStyle {
    /// The narrowest text.
    pub const WIDTH_MIN: usize = 40;
    /// The widest text: longer lines are hard to read.
    pub const WIDTH_MAX: usize = 120;
}

impl Default for DoctorStyle {
    /// 80 columns, no colours.
    fn default() -> Self {
        Self {
            width: 80,
            colour: false,
        }
    }
}

impl Doctor {
    /// The devices, the findings by group, the first remedy, and the verdict as the last line.
    #[must_use]
    pub fn to_text(&self, style: DoctorStyle) -> String {
        let DoctorStyle { width, colour } = style;
        let width = width.clamp(DoctorStyle::WIDTH_MIN, DoctorStyle::WIDTH_MAX);
        let style = DoctorStyle { width, colour };
        let mut text = format!("Doctor\n{}", labelled("", &self.head(), width));
        let name_columns = self.name_columns(width);
        for group in DoctorGroup::ALL {
            let lines = self.lines(group);
            if !lines.is_empty() {
                text.push_str(&format!("\n{}\n", style.styled(group.name(), BOLD)));
            }
            let lines = lines.into_iter();
            text.extend(lines.map(|(name, finding)| style.finding(finding, &name, name_columns)));
        }
        let first = self.first.as_ref();
        let first = first.map(|first| labelled("First: ", &sanitize(first), width));
        format!("{text}\n{}{}\n", first.unwrap_or_default(), self.verdict())
    }

    /// Names and findings of a group. Findings that several GPUs share are merged.
    fn lines(&self, group: DoctorGroup) -> Vec<(String, &DoctorFinding)> {
        let mut merged: Vec<(Vec<u32>, &DoctorFinding)> = Vec::new();
        for finding in self.findings.iter().filter(|f| f.group == group) {
            let same = merged.iter_mut().find(|(_, known)| {
                let alike = DoctorFinding {
                    gpu: known.gpu,
                    ..finding.clone()
                };
                finding.gpu.is_some() && known.gpu.is_some() && alike == **known
            });
            match same {
                Some((numbers, _)) => numbers.extend(finding.gpu),
                None => merged.push((finding.gpu.into_iter().collect(), finding)),
            }
        }
        merged
            .into_iter()
            .map(|(numbers, finding)| (self.name(finding, &numbers), finding))
            .collect()
    }

    fn head(&self) -> String {
        match &self.origin {
            None => "No GPU; host: this machine".to_owned(),
            Some(Origin::Measured { .. }) => sanitize(&counted(&self.devices)),
            Some(origin) => format!("{}; host: this machine", sanitize(&origin.line())),
        }
    }

    /// Name of the check, with GPU numbers unless it applies to all.
    fn name(&self, finding: &DoctorFinding, numbers: &[u32]) -> String {
        let name = sanitize(&finding.check);
        if numbers.is_empty() || numbers.len() >= self.devices.len() {
            return name;
        }
        let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
        format!("{name}, GPU {}", numbers.join(" "))
    }

    /// Columns of the names; 0 if they do not fit beside the observations.
    fn name_columns(&self, width: usize) -> usize {
        let groups = DoctorGroup::ALL.into_iter();
        let lines = groups.flat_map(|group| self.lines(group));
        let names = lines.map(|(name, _)| display_width(&name));
        let longest = names.max().unwrap_or(0) + 2;
        match width.checked_sub(STATUS_COLUMNS + longest) {
            Some(rest) if rest >= SEEN_COLUMNS_MIN => longest,
            _ => 0,
        }
    }
}

/// Each name once, with its count.
fn counted(names: &[String]) -> String {
    let first = |(index, name): &(usize, &String)| !names[..*index].contains(name);
    let names = names.iter().enumerate().filter(first).map(|(_, name)| {
        match names.iter().filter(|other| *other == name).count() {
            1 => name.clone(),
            count => format!("{count} x {name}"),
        }
    });
    names.collect::<Vec<_>>().join(", ")
}

impl DoctorStyle {
    fn finding(self, finding: &DoctorFinding, name: &str, name_columns: usize) -> String {
        let word = finding.status.name();
        let gap = " ".repeat(STATUS_COLUMNS - 2 - word.len());
        let code = match finding.status {
            DoctorStatus::Ok => 32,
            DoctorStatus::Warn => 33,
            DoctorStatus::Fail => 31,
            DoctorStatus::Skip => 2,
        };
        let indent = STATUS_COLUMNS + name_columns;
        let room = self.width.saturating_sub(indent).max(1);
        let (beside, mut lines) = match name_columns {
            0 => (String::new(), vec![name.to_owned()]),
            columns => (padded_left(name, columns), Vec::new()),
        };
        let mark = if finding.simulated { "SIMULATED: " } else { "" };
        lines.extend(wrap(&format!("{mark}{}", sanitize(&finding.seen)), room));
        if let Some(remedy) = &finding.remedy {
            let remedy = labelled("-> ", &sanitize(remedy), room);
            lines.extend(remedy.lines().map(str::to_owned));
        }
        let lines = lines.join(&format!("\n{}", " ".repeat(indent)));
        format!("  {}{gap}{beside}{lines}\n", self.styled(word, code))
    }

    /// With an ANSI style, if colours are enabled.
    fn styled(self, text: &str, code: u8) -> String {
        match self.colour {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }
}

//! A report as lines in columns.

use super::{Doctor, DoctorFinding, DoctorGroup, DoctorStatus};
use crate::Origin;
use crate::timeline::layout::words::{clean, columns};

const RESET: &str = "\u{1b}[0m";

/// Columns of the status, with what is before and behind it.
const STATUS_COLUMNS: usize = 8;

/// Fewer columns than this for what was seen: it goes below the name instead of beside it.
const SEEN_COLUMNS_MIN: usize = 24;

/// How the text looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DoctorLook {
    /// Columns of the terminal. Fewer than [`DoctorLook::WIDTH_MIN`] count as that many.
    pub width: usize,
    /// Whether to use colours, by ANSI escape sequences.
    pub colour: bool,
}

impl DoctorLook {
    /// The narrowest text.
    pub const WIDTH_MIN: usize = 40;
    /// The widest text: longer lines are hard to read.
    pub const WIDTH_MAX: usize = 120;
}

impl Default for DoctorLook {
    /// 80 columns, no colours.
    fn default() -> Self {
        Self {
            width: 80,
            colour: false,
        }
    }
}

impl Doctor {
    /// The devices, the findings by group, what to do first, and the verdict as the last line.
    #[must_use]
    pub fn to_text(&self, look: DoctorLook) -> String {
        let width = look
            .width
            .clamp(DoctorLook::WIDTH_MIN, DoctorLook::WIDTH_MAX);
        let mut text = String::from("Doctor\n");
        for line in wrap(&self.head(), width) {
            text.push_str(&line);
            text.push('\n');
        }
        let name_columns = self.name_columns(width);
        for group in DoctorGroup::ALL {
            let lines = self.lines(group);
            if lines.is_empty() {
                continue;
            }
            text.push_str(&format!("\n{}\n", bold(group.title(), look.colour)));
            for (name, finding) in lines {
                push_finding(&mut text, finding, &name, name_columns, width, look.colour);
            }
        }
        text.push('\n');
        if let Some(first) = &self.first {
            push_beside(&mut text, "First: ", &clean(first), width);
        }
        text.push_str(&self.verdict());
        text.push('\n');
        text
    }

    /// Names and findings of a group. What is the same on several GPUs is told once.
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
        let lines = merged.into_iter();
        lines
            .map(|(numbers, finding)| (self.name(finding, &numbers), finding))
            .collect()
    }

    fn head(&self) -> String {
        match &self.origin {
            None => "No GPU; the host is this machine".to_owned(),
            Some(Origin::Measured { .. }) => clean(&counted(&self.devices)),
            Some(origin) => format!("{}; the host is this machine", clean(&origin.line())),
        }
    }

    /// The check's name, with the numbers of its GPUs unless it is about all of them.
    fn name(&self, finding: &DoctorFinding, numbers: &[u32]) -> String {
        let name = clean(&finding.check);
        if numbers.is_empty() || numbers.len() >= self.devices.len() {
            return name;
        }
        let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
        format!("{name}, GPU {}", numbers.join(" "))
    }

    /// Columns for names; 0 where there is no room for them in a column of their own.
    fn name_columns(&self, width: usize) -> usize {
        let lines = DoctorGroup::ALL
            .into_iter()
            .flat_map(|group| self.lines(group));
        let longest = lines.map(|(name, _)| columns(&name)).max().unwrap_or(0) + 2;
        match width.checked_sub(STATUS_COLUMNS + longest) {
            Some(rest) if rest >= SEEN_COLUMNS_MIN => longest,
            _ => 0,
        }
    }
}

/// Names, each once, with how often it is there.
fn counted(names: &[String]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for name in names {
        match counts.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let texts = counts.iter().map(|(name, count)| match count {
        1 => (*name).to_owned(),
        count => format!("{count} x {name}"),
    });
    texts.collect::<Vec<_>>().join(", ")
}

fn push_finding(
    text: &mut String,
    finding: &DoctorFinding,
    name: &str,
    name_columns: usize,
    width: usize,
    colour: bool,
) {
    let word = finding.status.word();
    let gap = " ".repeat(STATUS_COLUMNS - 2 - word.len());
    let status = coloured(word, finding.status, colour);
    text.push_str(&format!("  {status}{gap}"));
    let indent = STATUS_COLUMNS + name_columns;
    let room = width.saturating_sub(indent).max(1);
    let mut lines = Vec::new();
    if name_columns == 0 {
        lines.push(name.to_owned());
    }
    let mark = if finding.simulated { "SIMULATED: " } else { "" };
    lines.extend(wrap(&format!("{mark}{}", clean(&finding.seen)), room));
    if let Some(remedy) = &finding.remedy {
        let inner = wrap(&clean(remedy), room.saturating_sub(3).max(1));
        lines.extend(inner.iter().enumerate().map(|(number, line)| {
            let arrow = if number == 0 { "-> " } else { "   " };
            format!("{arrow}{line}")
        }));
    }
    for (number, line) in lines.iter().enumerate() {
        if number > 0 {
            text.push_str(&" ".repeat(indent));
        } else if name_columns > 0 {
            let gap = " ".repeat(name_columns.saturating_sub(columns(name)));
            text.push_str(&format!("{name}{gap}"));
        }
        text.push_str(line);
        text.push('\n');
    }
}

/// `head`, and the words beside it, in lines of their own where there are many.
fn push_beside(text: &mut String, head: &str, words: &str, width: usize) {
    let room = width.saturating_sub(columns(head)).max(1);
    for (number, line) in wrap(words, room).iter().enumerate() {
        let start = match number {
            0 => head.to_owned(),
            _ => " ".repeat(columns(head)),
        };
        text.push_str(&format!("{start}{line}\n"));
    }
}

/// Lines of at most `most` columns, at least one. A word that is longer has a line for itself, whole:
/// a command that is cut cannot be copied.
fn wrap(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut taken = 0;
    for word in text.split_whitespace() {
        let needed = columns(word);
        if taken > 0 && taken + 1 + needed > most {
            lines.push(String::new());
            taken = 0;
        }
        let line = lines.last_mut().expect("begins with one");
        if taken > 0 {
            line.push(' ');
            taken += 1;
        }
        line.push_str(word);
        taken += needed;
    }
    lines
}

fn coloured(word: &str, status: DoctorStatus, colour: bool) -> String {
    let code = match status {
        DoctorStatus::Ok => 32,
        DoctorStatus::Warn => 33,
        DoctorStatus::Fail => 31,
        DoctorStatus::Skip => 2,
    };
    match colour {
        true => format!("\u{1b}[{code}m{word}{RESET}"),
        false => word.to_owned(),
    }
}

fn bold(text: &str, colour: bool) -> String {
    match colour {
        true => format!("\u{1b}[1m{text}{RESET}"),
        false => text.to_owned(),
    }
}

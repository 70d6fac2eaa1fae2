//! Checks that the maps in the docs of modules name modules that exist. A map is a `text` block in the
//! `//!` comment of a `lib.rs`, `main.rs` or `mod.rs`. A row names a module in its first column, alone, or
//! in parentheses at its end:
//!
//! ```text
//!   scheduler      which batch is read next
//!   LoadStream     tensors in the order in which they complete    (tensor_stream)
//! ```

use std::fs;
use std::path::Path;

use anyhow::ensure;

use crate::run_program::root;
use crate::step_runner::{Outcome, StepResult};

/// A block with fewer modules is a diagram of something else.
const MODULES_MIN: usize = 2;

/// Fails if a map names a module that does not exist beside it.
pub(crate) fn check() -> StepResult {
    let mut wrong = Vec::new();
    for member in fs::read_dir(root().join("crates"))? {
        check_folder(&member?.path().join("src"), &mut wrong)?;
    }
    check_folder(&root().join("xtask/src"), &mut wrong)?;
    wrong.sort();
    let wrong = wrong.join("\n");
    ensure!(
        wrong.is_empty(),
        "maps name modules that do not exist:\n{wrong}"
    );
    Ok(Outcome::Passed)
}

fn check_folder(folder: &Path, wrong: &mut Vec<String>) -> anyhow::Result<()> {
    let exists =
        |name: &str| folder.join(name).is_dir() || folder.join(name).with_extension("rs").is_file();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            check_folder(&path, wrong)?;
        } else if ["lib.rs", "main.rs", "mod.rs"]
            .iter()
            .any(|name| path.ends_with(name))
        {
            let missing = missing_modules(&fs::read_to_string(&path)?, exists);
            let file = path.strip_prefix(root()).unwrap_or(&path).display();
            wrong.extend(missing.iter().map(|name| format!("{file}: `{name}`")));
        }
    }
    Ok(())
}

/// The names in the maps of a file that are no modules.
fn missing_modules(text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let docs = text.lines().map_while(|line| line.strip_prefix("//!"));
    let docs: Vec<&str> = docs.map(str::trim).collect();
    let (mut missing, mut rest) = (Vec::new(), &docs[..]);
    while let Some(start) = rest.iter().position(|line| *line == "```text") {
        let block = &rest[start + 1..];
        let end = block.iter().position(|line| *line == "```");
        let (rows, after) = block.split_at(end.unwrap_or(block.len()));
        rest = after;
        let names = rows.iter().flat_map(|row| named_modules(row));
        let (good, bad): (Vec<&str>, Vec<&str>) = names.partition(|name| exists(name));
        if good.len() >= MODULES_MIN {
            missing.extend(bad.into_iter().map(str::to_owned));
        }
    }
    missing
}

/// The modules that a row names.
fn named_modules(row: &str) -> Vec<&str> {
    let is_name = |name: &&str| {
        name.starts_with(|char: char| char.is_ascii_lowercase())
            && name
                .chars()
                .all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_')
    };
    let mut names = Vec::new();
    if let Some((_, last)) = row.strip_suffix(')').and_then(|row| row.rsplit_once('(')) {
        if last.starts_with("this file") {
            return names;
        }
        names.extend(last.split(", ").filter(is_name));
    }
    let first = row.split("  ").next().unwrap_or_default();
    let first = first.trim_end_matches('/').trim_end_matches(".rs");
    names.extend(Some(first).filter(is_name));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "//! ```text\n//!   one      text\n//!     two/   more (three, Type)\n\
                       //!   four.rs  text\n//!   Type, and words   text (two words)\n\
                       //!   run      text   (this file)\n//! ```\n";

    #[test]
    fn modules_of_a_map_exist() {
        let all = |name: &str| ["one", "two", "three", "four"].contains(&name);
        assert_eq!(missing_modules(MAP, all), [""; 0]);
        let some = |name: &str| ["one", "three"].contains(&name);
        assert_eq!(missing_modules(MAP, some), ["two", "four"]);
    }

    #[test]
    fn other_diagrams_and_code_are_no_maps() {
        assert_eq!(missing_modules(MAP, |name| name == "one"), [""; 0]);
        let code = MAP.replace("text\n//!   one", "\n//!   one");
        assert_eq!(missing_modules(&code, |name| name != "four"), [""; 0]);
    }
}

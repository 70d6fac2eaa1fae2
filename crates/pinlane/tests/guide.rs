//! Every chapter of the guide shows its program, and exactly what the program prints.
//!
//! After changing a program run `PINLANE_GUIDE=write cargo test -p pinlane --test guide` and read the diff.

use std::fs;
use std::path::{Path, PathBuf};

use pinlane_testing::run_example;

fn guide() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide")
}

/// The programs, by name.
fn programs() -> Vec<String> {
    let files = fs::read_dir(guide()).expect("the guide");
    let names = files.map(|file| {
        file.expect("a file")
            .file_name()
            .into_string()
            .expect("UTF-8")
    });
    let mut names: Vec<String> = names
        .filter_map(|name| name.strip_suffix(".rs").map(str::to_owned))
        .collect();
    names.sort();
    assert_eq!(names.len(), 12, "one program per chapter");
    names
}

#[test]
fn chapters_show_their_programs_and_what_they_print() {
    for name in programs() {
        let path = guide().join(format!("{name}.md"));
        let chapter = fs::read_to_string(&path).expect("a chapter per program");
        let program = fs::read_to_string(guide().join(format!("{name}.rs"))).expect("a program");
        let program = format!("```rust\n{program}```");
        let output = format!(
            "```text\n{}\n```",
            run_example(&format!("guide-{name}")).trim_end()
        );
        if std::env::var_os("PINLANE_GUIDE").is_some_and(|value| value == "write") {
            fs::write(&path, rewritten(&chapter, &program, &output)).expect("a chapter");
            continue;
        }
        assert!(
            chapter.contains(&program),
            "{name}.md shows another program"
        );
        assert!(
            chapter.contains(&output),
            "{name}.md does not show:\n{output}"
        );
    }
}

/// The chapter with its program and output replaced: the block that begins with the program's first line, and
/// the one after it.
fn rewritten(chapter: &str, program: &str, output: &str) -> String {
    let start = chapter.find("```rust\n//!").or(chapter.find("{{program}}"));
    let start = start.expect("the program");
    let rest = &chapter[start..];
    let end = match rest.find("{{output}}") {
        Some(at) => at + "{{output}}".len(),
        None => rest.match_indices("\n```").nth(2).expect("the output").0 + "\n```".len(),
    };
    format!("{}{program}\n\n{output}{}", &chapter[..start], &rest[end..])
}

#[test]
fn the_contents_list_every_chapter() {
    let contents = fs::read_to_string(guide().join("README.md")).expect("the contents");
    for name in programs() {
        assert!(contents.contains(&format!("({name}.md)")), "{name}");
    }
}

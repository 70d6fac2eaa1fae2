//! Completions and manual pages cover every command.

#[path = "support/scratch.rs"]
mod scratch;
mod support;

use scratch::Scratch;
use support::{run, stderr, stdout};

const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

/// The commands as `--help` lists them.
fn commands() -> Vec<String> {
    let output = run(&["--help"]);
    let help = stdout(&output);
    let list = help
        .split("Commands:\n")
        .nth(1)
        .expect("a list of commands");
    list.lines()
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_shell_completes_every_command() {
    let commands = commands();
    assert!(commands.len() > 5, "{commands:?}");
    for shell in SHELLS {
        let output = run(&["completions", shell]);
        assert!(output.status.success(), "{}", stderr(&output));
        for command in &commands {
            assert!(stdout(&output).contains(command), "{shell}: {command}");
        }
    }
}

#[test]
fn every_command_has_a_page_with_its_examples() {
    let scratch = Scratch::new();
    let folder = scratch.file("pages");
    let output = run(&["man", "--output", &folder]);
    assert!(output.status.success(), "{}", stderr(&output));
    for command in commands() {
        let page = std::fs::read_to_string(format!("{folder}/pinlane-{command}.1"));
        let page = page.unwrap_or_else(|error| panic!("{command}: {error}"));
        assert!(page.contains("Examples:"), "{command} teaches nothing");
    }
    let tool = std::fs::read_to_string(format!("{folder}/pinlane.1")).expect("the tool's page");
    assert_eq!(tool, stdout(&run(&["man"])));
}

#[test]
fn every_command_shows_two_examples_or_more() {
    for command in commands() {
        let output = run(&[&command, "--help"]);
        let help = stdout(&output);
        let examples = help.split("Examples:\n").nth(1).unwrap_or("");
        let count = examples.lines().filter(|line| line.contains("pinlane"));
        assert!(count.count() >= 2, "{command}: {examples}");
    }
}

#[test]
fn unknown_shells_and_bad_folders_are_rejected() {
    let output = run(&["completions", "tcsh"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("bash"), "{}", stderr(&output));
    let output = run(&["man", "--output", "/dev/null/pages"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--output /dev/null/pages"));
}

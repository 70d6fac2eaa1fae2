//! `pinlane boost`, as a user sees it.

#[path = "support/programs.rs"]
mod programs;
#[path = "support/scratch.rs"]
mod scratch;
mod support;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

use programs::{compiled, compiled_with};
use scratch::Scratch;
use support::{pinlane, stderr, stdout};

/// The tool with a cache and a folder for temporary files of its own.
fn boost(scratch: &Scratch, args: &[&str]) -> Command {
    let temporary = scratch.folder().join("tmp");
    fs::create_dir_all(&temporary).expect("a folder");
    let mut command = pinlane(args);
    command
        .env("XDG_CACHE_HOME", scratch.folder().join("cache"))
        .env("TMPDIR", temporary)
        .env_remove("LD_PRELOAD");
    command
}

/// Runs it. Nothing is left of it but the cache.
fn run(scratch: &Scratch, args: &[&str]) -> Output {
    let output = boost(scratch, args).output().expect("pinlane starts");
    let left = fs::read_dir(scratch.folder().join("tmp")).expect("a folder");
    assert_eq!(left.count(), 0);
    output
}

/// The lines of a text, for golden texts without the program's path.
fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

#[test]
fn a_program_runs_on_the_simulated_gpu_over_the_express_lane() {
    let scratch = Scratch::new();
    let program = compiled(&scratch, "every_copy");
    let output = run(&scratch, &["--device", "sim:h200", "boost", "--", &program]);
    assert_eq!(stdout(&output), "every byte right\n");
    assert_eq!(
        stderr(&output),
        "pinlane: boost: 92 of 230 copies between host and device over the express lane\n"
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn stats_say_what_was_gained() {
    let scratch = Scratch::new();
    let program = compiled(&scratch, "every_copy");
    let args = ["--device", "sim:h200", "boost", "--stats", "--", &program];
    let output = run(&scratch, &args);
    assert_eq!(stdout(&output), "every byte right\n");
    let lines = lines(stderr(&output));
    assert_eq!(lines[0], "=== Boost ===");
    assert_eq!(
        lines[1],
        format!("{program}: 230 copies between host and device")
    );
    assert_eq!(lines[2], "SIMULATED: sim:h200, not a real GPU");
    assert_eq!(
        lines[3..].join("\n"),
        include_str!("golden/boost.txt").trim_end()
    );

    let output = run(&scratch, &[&["--json"], &args[..]].concat());
    let json: serde_json::Value = serde_json::from_str(stdout(&output)).expect("valid JSON");
    assert_eq!(stderr(&output), "every byte right\n");
    assert_eq!(json["origin"], "SIMULATED");
    assert_eq!(json["copies"], 230);
    assert_eq!(json["boosted"][0]["copies"], 46);
}

#[test]
fn standard_input_and_exit_status_are_the_programs() {
    let scratch = Scratch::new();
    let mut command = boost(&scratch, &["boost", "--", "sh", "-c", "cat; exit 7"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("pinlane starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"through the pipe").expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(stdout(&output), "through the pipe");
    assert_eq!(output.status.code(), Some(7));
}

#[test]
fn a_program_that_dies_of_a_signal_ends_the_tool_by_it() {
    let scratch = Scratch::new();
    for (name, number) in [("TERM", 15), ("SEGV", 11), ("KILL", 9)] {
        let output = run(
            &scratch,
            &["boost", "--", "sh", "-c", &format!("kill -{name} $$")],
        );
        assert_eq!(output.status.signal(), Some(number));
    }
}

#[test]
fn signals_are_passed_on() {
    let scratch = Scratch::new();
    // Not INT, QUIT and HUP: where the tests run in the background these are ignored, and a shell cannot trap them then.
    for name in ["TERM", "USR1", "USR2", "ALRM"] {
        // The program says that it is ready, then waits for the signal.
        let script = format!(
            "trap 'echo got {name}; exit 5' {name}; echo ready; while :; do sleep 0.05; done"
        );
        let mut child = boost(&scratch, &["boost", "--", "sh", "-c", &script])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("pinlane starts");
        let mut out = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        std::io::BufRead::read_line(&mut out, &mut line).expect("it writes");
        assert_eq!(line, "ready\n");
        let kill = ["-s", name, &child.id().to_string()];
        assert!(
            Command::new("kill")
                .args(kill)
                .status()
                .expect("kill is there")
                .success()
        );
        std::io::BufRead::read_line(&mut out, &mut line).expect("it writes");
        assert_eq!(line, format!("ready\ngot {name}\n"));
        assert_eq!(child.wait().expect("it ends").code(), Some(5));
    }
}

#[test]
fn ignored_ends_of_children_are_seen() {
    let scratch = Scratch::new();
    let tool = boost(&scratch, &[]).get_program().to_owned();
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg("trap '' CHLD; exec \"$0\" boost -- sh -c 'exit 3'");
    let output = command.arg(tool).output().expect("sh is there");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn the_exit_status_counts_more_than_the_counters() {
    let scratch = Scratch::new();
    let script = "rm -r \"$PINLANE_BOOST_FOLDER\"; exit 3";
    let output = run(&scratch, &["boost", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn counters_of_a_killed_program_count() {
    let scratch = Scratch::new();
    let program = compiled(&scratch, "every_copy");
    // The program's own process ends first; its parent is killed.
    let script = format!("{program}; kill -KILL $$");
    let output = run(
        &scratch,
        &["--device", "sim:h200", "boost", "--", "sh", "-c", &script],
    );
    assert!(
        stderr(&output).contains("92 of 230 copies"),
        "{}",
        stderr(&output)
    );
    assert_eq!(output.status.signal(), Some(9));
}

#[test]
fn programs_without_copies_are_explained() {
    let scratch = Scratch::new();
    let explained = |program: &str| {
        let output = run(&scratch, &["boost", "--", program]);
        let text = stderr(&output);
        let reason = text.strip_prefix("pinlane: boost: no copies were seen: ");
        reason.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    assert!(explained("true").starts_with("true did not load libcuda"));

    fs::write(scratch.file("nothing.c"), "int main(void) { return 0; }").expect("a file");
    let fixed = scratch.file("static");
    let compiled = Command::new("cc")
        .args(["-static", "-o", &fixed, &scratch.file("nothing.c")])
        .status();
    assert!(compiled.expect("there is a C compiler").success());
    assert!(explained(&fixed).contains("is linked statically"));

    let clears = ["boost", "--", "env", "-u", "LD_PRELOAD", "true"];
    let output = run(&scratch, &clears);
    assert!(
        stderr(&output).contains("env did not load libcuda"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn children_can_be_left_alone() {
    let scratch = Scratch::new();
    let program = compiled(&scratch, "every_copy");
    let args = [
        "--device",
        "sim:h200",
        "boost",
        "--no-children",
        "--",
        "sh",
        "-c",
        &program,
    ];
    // A shell that does not replace itself by the program.
    let script = format!("{program}; true");
    let output = run(&scratch, &[&args[..7], &[&script[..]]].concat());
    assert_eq!(stdout(&output), "every byte right\n");
    assert!(
        stderr(&output).contains("no copies were seen"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn other_preloaded_libraries_stay() {
    let scratch = Scratch::new();
    let other = compiled_with(&scratch, "other_interposer", &["-shared", "-fPIC"]);
    let program = compiled(&scratch, "every_copy");
    let output = boost(&scratch, &["--device", "sim:h200", "boost", "--", &program])
        .env("LD_PRELOAD", &other)
        .output()
        .expect("pinlane starts");
    assert_eq!(stdout(&output), "every byte right\n");
    assert!(
        stderr(&output).contains("92 of 230 copies"),
        "{}",
        stderr(&output)
    );
    assert!(stderr(&output).contains("other: "), "{}", stderr(&output));
}

#[test]
fn bad_commands_have_the_exit_status_of_shells() {
    let scratch = Scratch::new();
    let output = run(&scratch, &["boost", "--", "no-such-program"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(
        stderr(&output).contains("cannot run no-such-program"),
        "{}",
        stderr(&output)
    );
    let output = run(&scratch, &["boost", "--", "/etc/passwd"]);
    assert_eq!(output.status.code(), Some(126));
    for args in [
        &["boost"][..],
        &["--device", "cuda:1", "boost", "--", "true"],
    ] {
        assert_eq!(support::run(args).status.code(), Some(2));
    }
}

#[test]
fn folders_that_cannot_be_used() {
    let scratch = Scratch::new();
    // A cache that others can write to is not used; the program runs all the same.
    let cache = scratch.folder().join("cache/pinlane/libraries");
    fs::create_dir_all(&cache).expect("a folder");
    for entry in [&cache, cache.parent().expect("above")] {
        fs::set_permissions(entry, fs::Permissions::from_mode(0o777)).expect("ours");
    }
    let program = compiled(&scratch, "every_copy");
    let args = ["--device", "sim:h200", "boost", "--", &program];
    let output = run(&scratch, &args);
    assert!(
        stderr(&output).contains("92 of 230 copies"),
        "{}",
        stderr(&output)
    );

    // Without a folder for temporary files there is nothing to run with.
    let output = boost(&scratch, &args)
        .env("TMPDIR", "/dev/null")
        .output()
        .expect("pinlane starts");
    assert!(
        stderr(&output).contains("set TMPDIR"),
        "{}",
        stderr(&output)
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_damaged_library_in_the_cache_is_replaced() {
    let scratch = Scratch::new();
    let program = compiled(&scratch, "every_copy");
    let args = ["--device", "sim:h200", "boost", "--", &program];
    run(&scratch, &args);
    let cache = scratch.folder().join("cache/pinlane/libraries");
    let mut damaged = 0;
    for folder in fs::read_dir(cache).expect("the cache") {
        for file in fs::read_dir(folder.expect("an entry").path()).expect("a folder") {
            fs::write(file.expect("an entry").path(), "not a library").expect("ours");
            damaged += 1;
        }
    }
    assert_eq!(damaged, 3);
    let output = run(&scratch, &args);
    assert!(
        stderr(&output).contains("92 of 230 copies"),
        "{}",
        stderr(&output)
    );
}

//! What is said when the process ends: contexts, calls that are not supported, misuse and leaks.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::settings::report_path;
use crate::state::{Machine, machine};

/// What calls leave behind for the report.
struct Notes {
    /// How many contexts each device got, by number and whether it was the primary one.
    contexts: BTreeMap<(u32, bool), u64>,
    /// How often each call was made that is not supported.
    unsupported: BTreeMap<String, u64>,
}

static NOTES: Mutex<Notes> = Mutex::new(Notes {
    contexts: BTreeMap::new(),
    unsupported: BTreeMap::new(),
});

fn notes() -> MutexGuard<'static, Notes> {
    NOTES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that a device got a context.
pub fn note_context(ordinal: u32, primary: bool) {
    *notes().contexts.entry((ordinal, primary)).or_default() += 1;
}

/// Notes a call that is not supported. Without a report file the first of each is said at once.
pub fn note_unsupported(name: &str) {
    let mut notes = notes();
    let calls = notes.unsupported.entry(name.to_owned()).or_default();
    *calls += 1;
    if *calls == 1 && report_path().is_none() {
        eprintln!("pinlane simcuda: {name} is not supported by the simulated GPU");
    }
}

/// What the simulator found. A lost GPU let the program free nothing, so nothing is a leak then.
fn finding_lines(machine: &Machine) -> Vec<String> {
    machine
        .contexts
        .for_each(|context| context.end_thread_streams());
    let lost = machine.is_lost();
    let findings = machine.sim.finish().into_iter();
    let said = findings
        .filter(|finding| !(lost && finding.kind.is_leak()))
        .map(|finding| {
            let class = if finding.kind.is_leak() {
                "leak"
            } else {
                "misuse"
            };
            format!("{class}: {finding}")
        });
    said.collect()
}

/// The lines on contexts, and the lines on what went wrong.
fn lines(machine: Option<&Machine>) -> (Vec<String>, Vec<String>) {
    let plural = |count: u64, one: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    };
    let mut wrong = machine.map(finding_lines).unwrap_or_default();
    let notes = notes();
    for (name, calls) in &notes.unsupported {
        wrong.push(format!("unsupported: {name}, {}", plural(*calls, "call")));
    }
    let contexts = notes.contexts.iter().map(|((ordinal, primary), count)| {
        let kind = if *primary { "primary" } else { "created" };
        format!(
            "context: device {ordinal}, {kind}, {}",
            plural(*count, "time")
        )
    });
    (contexts.collect(), wrong)
}

/// Writes the report: to the file, or what is wrong to stderr.
fn write(machine: Option<&Machine>) {
    let (contexts, wrong) = lines(machine);
    let Some(path) = report_path() else {
        for line in &wrong {
            eprintln!("pinlane simcuda: {line}");
        }
        return;
    };
    let mut text = String::new();
    for line in contexts.iter().chain(&wrong) {
        let _ = writeln!(text, "{line}"); // into a string, cannot fail
    }
    if let Err(error) = std::fs::write(&path, text) {
        eprintln!(
            "pinlane simcuda: cannot write the report {}: {error}",
            path.display()
        );
    }
}

/// Runs when the process ends, after its own handlers, which may still free things.
extern "C" fn at_exit() {
    // A forked child, and a process that used nothing of this, has nothing to say.
    let machine = machine().ok();
    if machine.is_none() && notes().unsupported.is_empty() {
        return;
    }
    // A report that fails must not change how the process ends.
    let _ = catch_unwind(AssertUnwindSafe(|| write(machine)));
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

//! The report at the end of the process: contexts, unsupported calls, misuse and leaks.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard};

use crate::machine::{Machine, lock, machine};
use crate::settings::report_path;

/// What calls record for the report.
struct Notes {
    /// Number of contexts, by device and whether it was the primary one.
    contexts: BTreeMap<(u32, bool), u64>,
    /// Number of calls to each unsupported function.
    unsupported: BTreeMap<String, u64>,
}

static NOTES: Mutex<Notes> = Mutex::new(Notes {
    contexts: BTreeMap::new(),
    unsupported: BTreeMap::new(),
});

fn notes() -> MutexGuard<'static, Notes> {
    lock(&NOTES)
}

/// Records a context.
pub fn note_context(ordinal: u32, primary: bool) {
    *notes().contexts.entry((ordinal, primary)).or_default() += 1;
}

/// Records an unsupported call. Without a report file, the first one of each is printed at once.
pub fn note_unsupported(name: &str) {
    let mut notes = notes();
    let calls = notes.unsupported.entry(name.to_owned()).or_default();
    *calls += 1;
    if *calls == 1 && report_path().is_none() {
        eprintln!("pinlane simcuda: {name} is not supported by the simulated GPU");
    }
}

/// The simulator's findings. A lost GPU has no leaks, because the program could not free anything.
fn finding_lines(machine: &Machine) -> Vec<String> {
    machine
        .contexts
        .for_each(|context| context.end_thread_streams());
    let lost = machine.is_lost();
    let findings = machine.sim.finish().into_iter();
    let lines = findings.filter_map(|finding| match finding.kind.is_leak() {
        true => (!lost).then(|| format!("leak: {finding}")),
        false => Some(format!("misuse: {finding}")),
    });
    lines.collect()
}

/// The lines about contexts, and those about problems.
fn lines(machine: Option<&Machine>) -> (Vec<String>, Vec<String>) {
    let plural = |count: u64, one: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    };
    let mut problems = machine.map(finding_lines).unwrap_or_default();
    let notes = notes();
    for (name, calls) in &notes.unsupported {
        problems.push(format!("unsupported: {name}, {}", plural(*calls, "call")));
    }
    let contexts = notes.contexts.iter().map(|((ordinal, primary), count)| {
        let kind = if *primary { "primary" } else { "created" };
        let times = plural(*count, "time");
        format!("context: device {ordinal}, {kind}, {times}")
    });
    (contexts.collect(), problems)
}

/// Writes the report to its file, or only the problems to stderr.
fn write(machine: Option<&Machine>) {
    let (contexts, problems) = lines(machine);
    let Some(path) = report_path() else {
        for line in &problems {
            eprintln!("pinlane simcuda: {line}");
        }
        return;
    };
    let lines = contexts.iter().chain(&problems);
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    if let Err(error) = std::fs::write(&path, text) {
        let path = path.display();
        eprintln!("pinlane simcuda: cannot write the report {path}: {error}");
    }
}

/// Runs at the end of the process, after its own handlers, which may still free memory.
extern "C" fn at_exit() {
    // A forked child and a process that never used this library have nothing to report.
    let machine = machine().ok();
    if machine.is_none() && notes().unsupported.is_empty() {
        return;
    }
    // A failing report must not change the exit status.
    let _ = catch_unwind(AssertUnwindSafe(|| write(machine)));
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

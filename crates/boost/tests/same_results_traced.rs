//! With a trace a program gets the same bytes and the same results of its calls as without it, boosted or not.

mod support;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs};

use pinlane_boost_files::trace::{Recording, read_traces};
use pinlane_boost_files::variables;
use support::{FindBy, Program, text_of};

/// Runs a program plain and with a trace, and returns the trace.
fn same_with_and_without(
    name: &str,
    find_by: FindBy,
    arguments: &[&str],
    boost: &str,
) -> Vec<Recording> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = env::temp_dir().join(format!("pinlane-traced-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let program = Program::found_by(name, find_by)
        .arguments(arguments)
        .variable(variables::BOOST, boost)
        .variable(variables::TRACE_FOLDER, folder.to_str().expect("text"));
    let plain = text_of(&program.plain());
    let run = program.boosted();
    assert_eq!(run.stdout(), plain, "{name}");
    let recordings = read_traces(&folder).expect("traces");
    fs::remove_dir_all(&folder).expect("ours");
    recordings
}

#[test]
fn every_program_has_the_same_results() {
    for boost in ["0", "1"] {
        for name in ["every_copy", "ordered", "contexts", "pinned", "errors"] {
            let recordings = same_with_and_without(name, FindBy::Dlsym, &[], boost);
            assert_eq!(recordings.len(), 1, "{name}");
            assert!(
                recordings[0].calls > 0 && recordings[0].end_ns.is_some(),
                "{name}"
            );
        }
    }
}

#[test]
fn every_way_to_libcuda_is_traced() {
    let ways = [
        FindBy::Dlsym,
        FindBy::Path,
        FindBy::ProcAddress,
        FindBy::Linked,
    ];
    let calls = ways.map(|find_by| same_with_and_without("every_copy", find_by, &[], "0")[0].calls);
    assert_eq!(calls, [calls[0]; 4]);
}

#[test]
fn a_forked_child_does_not_write_into_its_parents_trace() {
    let recordings = same_with_and_without("fork", FindBy::Dlsym, &[], "0");
    assert!(recordings.iter().all(|recording| {
        recording
            .events
            .iter()
            .all(|event| event.thread == recording.process)
    }));
}

#[test]
fn copies_of_many_threads() {
    for boost in ["0", "1"] {
        let arguments = ["8", "20", "4"];
        let recordings = same_with_and_without("random_copies", FindBy::Dlsym, &arguments, boost);
        let threads = recordings[0].events.iter().map(|event| event.thread);
        assert!(threads.collect::<BTreeSet<_>>().len() >= 8);
    }
}

#[test]
fn calls_at_which_a_recorder_could_do_harm() {
    for case in ["batch", "dlerror"] {
        same_with_and_without("traced_edges", FindBy::Dlsym, &[case], "0");
    }
    // At various moments of the first call.
    for spins in (0..40_000).step_by(4_000) {
        same_with_and_without("traced_edges", FindBy::Dlsym, &[&spins.to_string()], "0");
    }
}

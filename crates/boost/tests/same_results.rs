//! With the library a program gets the same bytes and the same results of its calls as without it.

mod support;

use pinlane_boost_files::{Counter, Direction, PlainReason};
use support::{Program, text_of};

/// Runs a program both ways and returns the boosted run.
fn same_with_and_without(program: &Program) -> support::Run {
    let plain = text_of(&program.plain());
    let run = program.boosted();
    assert_eq!(run.stdout(), plain);
    run
}

#[test]
fn order_of_streams_and_events() {
    let program = Program::new("ordered");
    let run = same_with_and_without(&program);
    assert_eq!(run.boosted_copies(), (18, 36));
    run.assert_clean();
}

#[test]
fn order_under_adversarial_schedules() {
    let program =
        |seed: u32| Program::new("ordered").variable("PINLANE_SIMCUDA_SEED", &seed.to_string());
    for seed in 0..20 {
        let run = program(seed).boosted();
        assert_eq!(run.stdout(), "in order\n", "seed {seed}");
        run.assert_clean();
    }
}

#[test]
fn contexts_that_come_and_go() {
    let run = same_with_and_without(&Program::new("contexts").pinning());
    assert_eq!(run.boosted_copies(), (20, 20));
    run.assert_clean();
}

#[test]
fn pinned_memory() {
    let run = same_with_and_without(&Program::new("pinned").pinning());
    let served = run.counters.get(Counter::PinnedAllocations);
    // Four of eight kinds of flags, and two in each of 30 rounds.
    assert_eq!(served, 64);
}

#[test]
fn pinned_memory_freed_in_flight() {
    for seed in 0..5 {
        let program = Program::new("pinned").pinning().arguments(&["in flight"]);
        let run = program
            .variable("PINLANE_SIMCUDA_SEED", &seed.to_string())
            .boosted();
        assert!(
            run.stdout().ends_with("pinned memory right\n"),
            "seed {seed}"
        );
        let wrong = |line: &&String| line.contains("in flight") || line.contains("leak");
        assert_eq!(run.report.iter().find(wrong), None, "seed {seed}");
    }
}

#[test]
fn pinned_memory_is_left_to_the_driver_unless_asked() {
    let run = Program::new("contexts").boosted();
    assert_eq!(run.counters.get(Counter::PinnedAllocations), 0);
}

#[test]
fn errors() {
    let run = same_with_and_without(&Program::new("errors"));
    assert_eq!(run.boosted_copies(), (1, 2));
}

#[test]
fn forked_children() {
    same_with_and_without(&Program::new("fork").pinning());
}

#[test]
fn without_pinned_memory_the_driver_copies() {
    let program = Program::new("every_copy").variable("PINLANE_PINNED_LIMIT", "4096");
    same_with_and_without(&program).assert_clean();
}

#[test]
fn random_copies_of_many_threads() {
    for seed in ["1", "2"] {
        let program = Program::new("random_copies")
            .pinning()
            .arguments(&["8", "20", seed]);
        let run = program.boosted();
        assert_eq!(run.stdout(), "every byte right\n");
        assert!(run.boosted_copies().0 > 20 && run.boosted_copies().1 > 20);
        run.assert_clean();
    }
}

#[test]
fn random_copies_with_all_lanes() {
    let program = Program::new("random_copies")
        .pinning()
        .on_gpu()
        .arguments(&["8", "20", "3"]);
    let run = program.boosted();
    assert_eq!(run.stdout(), "every byte right\n");
    run.assert_clean();
}

#[test]
fn a_device_that_is_lost_is_an_error_and_no_hang() {
    for calls in [20, 60, 100] {
        let lost = format!("lost:{calls}");
        let program = Program::new("every_copy").variable("PINLANE_SIMCUDA_FAIL", &lost);
        assert_eq!(program.plain().status.code(), Some(1));
        assert_eq!(program.boosted().output.status.code(), Some(1));
    }
}

#[test]
fn copies_during_a_capture_are_the_drivers() {
    let program =
        Program::found_by("capture", support::FindBy::Linked).with_interposer("fake_capture");
    let run = program.boosted();
    assert_eq!(run.stdout(), "captured\n");
    assert_eq!(run.boosted_copies(), (5, 0));
    let captured = Counter::PlainCopies(Direction::Upload, PlainReason::Capturing);
    assert_eq!(run.counters.get(captured), 3);
}

#[test]
fn a_capture_that_fails_leaves_copies_boosted() {
    // The simulated libcuda captures nothing, so the program ends there.
    let run = Program::found_by("capture", support::FindBy::Linked).boosted();
    assert_eq!(run.output.status.code(), Some(1));
    assert_eq!(run.boosted_copies(), (1, 0));
}

#[test]
fn contexts_that_stay() {
    let run = same_with_and_without(&Program::new("kept_contexts").pinning());
    assert_eq!(run.counters.get(Counter::PinnedAllocations), 2);
}

#[test]
fn signals_that_the_program_waits_for() {
    let program = Program::new("signals").on_gpu();
    let run = same_with_and_without(&program);
    assert_eq!(run.boosted_copies(), (3, 0));
}

/// The simulated libcuda does not wait there, so only the boosted run shows what is documented.
#[test]
fn sources_that_earlier_work_writes() {
    let run = Program::new("host_function").boosted();
    assert_eq!(
        (run.stdout().as_str(), run.boosted_copies()),
        ("7 7\n", (1, 1))
    );
}

#[test]
fn a_standard_error_that_cannot_be_written() {
    for limited in [false, true] {
        let mut program = Program::new("ordered").variable("PINLANE_BOOST_STATS", "1");
        if limited {
            program = program.without_files();
        }
        let output = program.boosted_with_full_stderr();
        assert!(output.success(), "{output}");
    }
}

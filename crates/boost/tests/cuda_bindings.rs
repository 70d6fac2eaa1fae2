//! A Python program with NVIDIA's own bindings, as an unmodified client: `PINLANE_PYTHON` names a Python that has them.

mod support;

use std::env;
use std::fs;
use std::path::Path;

use pinlane_boost_files::{Counter, read_all, variables};
use pinlane_simcuda::testing::{self, Stage};

#[test]
fn its_copies_are_seen_and_its_bytes_are_right() {
    let Some(python) = env::var_os("PINLANE_PYTHON") else {
        eprintln!("skipped: PINLANE_PYTHON does not name a Python with cuda-bindings");
        return;
    };
    for per_thread in ["0", "1"] {
        let stage = Stage::new().expect("simcuda is built");
        let counters = stage.folder().join("counters");
        fs::create_dir(&counters).expect("a folder");
        // It checks its own bytes.
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../simcuda/tests/programs");
        let mut command = stage.command(&python);
        let output = command
            .arg(programs.join("transfers.py"))
            .env("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", per_thread)
            .env(
                "LD_PRELOAD",
                testing::built_library("libpinlane_boost.so").expect("it is built"),
            )
            .env(variables::FOLDER, &counters)
            .output()
            .expect("PINLANE_PYTHON starts");
        support::text_of(&output);
        let processes = read_all(&counters).expect("counters");
        let found = processes
            .iter()
            .filter(|it| it.get(Counter::FoundDriver) > 0);
        assert_eq!(found.count(), 1);
        assert!(processes.iter().any(|process| process.copies_seen() > 0));
        let report = stage.report().expect("the program called cuInit");
        assert_eq!(testing::complaints(&report), [""; 0]);
    }
}

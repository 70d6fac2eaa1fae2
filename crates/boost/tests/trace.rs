//! What the library records of programs that it is preloaded into, on the simulated GPU.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::{env, fs};

use pinlane_boost_files::trace::{
    Frame, HostMemory, Operation, PythonLines, Recording, Route, Site, read_traces,
};
use pinlane_boost_files::variables;
use pinlane_simcuda::testing::{self, Stage};

fn library() -> PathBuf {
    testing::built_library("libpinlane_boost.so").expect("it is built")
}

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

/// Compiles a program into the stage's folder, with its functions' names for the loader.
fn compile(stage: &Stage, name: &str) -> PathBuf {
    let target = stage.folder().join(name);
    let mut command = Command::new("cc");
    command.args(["-O1", "-rdynamic", "-o"]).arg(&target);
    let status = command
        .arg(programs().join(format!("{name}.c")))
        .arg("-ldl")
        .status();
    assert!(status.expect("a C compiler").success());
    target
}

/// Runs a program with trace, and returns how it ended and its recordings.
fn trace(stage: &Stage, program: &Path, arguments: &[&str]) -> (ExitStatus, Vec<Recording>) {
    let folder = stage.folder().join("trace");
    fs::create_dir_all(&folder).unwrap();
    let mut command = stage.command(program);
    command.args(arguments);
    command.env("LD_PRELOAD", library());
    command.env(variables::TRACE_FOLDER, &folder);
    command.env(variables::BOOST, "0");
    let status = command.status().unwrap();
    (status, read_traces(&folder).unwrap())
}

fn find(recording: &Recording, operation: Operation, route: Route, memory: HostMemory) -> &Site {
    let mut sites = recording.sites.iter();
    let is_it =
        |site: &&Site| site.operation == operation && site.route == route && site.memory == memory;
    sites
        .find(is_it)
        .unwrap_or_else(|| panic!("no {operation:?} {route:?} {memory:?} in {recording:#?}"))
}

#[test]
fn every_call_is_recorded() {
    let stage = Stage::new().unwrap();
    let (status, recordings) = trace(&stage, &compile(&stage, "trace_calls"), &[]);
    assert!(status.success());
    let [recording] = &recordings[..] else {
        panic!("{recordings:#?}");
    };
    assert!(recording.command.ends_with("trace_calls"));
    assert!(
        recording
            .end_ns
            .is_some_and(|end_ns| end_ns > recording.start_ns)
    );
    assert_eq!(recording.python, PythonLines::NoPython);
    assert_eq!(recording.calls, recording.events.len() as u64);

    let bytes = 1 << 16;
    let find = |operation, route, memory| find(recording, operation, route, memory);
    let uploads = find(Operation::Copy, Route::Upload, HostMemory::Pageable);
    assert_eq!((uploads.totals.calls, uploads.totals.bytes), (3, 3 * bytes));
    assert!(
        !uploads.is_async
            && uploads.totals.ns > 0
            && uploads.totals.longest_ns <= uploads.totals.ns
    );
    let Frame::Native { name: caller, .. } = &uploads.frames[0] else {
        panic!("{:?}", uploads.frames);
    };
    assert!(
        caller.starts_with("trace_calls!upload_pageable+0x"),
        "{caller}"
    );
    for (route, memory, expected_bytes, is_async) in [
        (Route::Upload, HostMemory::Pinned, bytes, true),
        (Route::Upload, HostMemory::WriteCombined, bytes, true),
        (Route::Download, HostMemory::Registered, bytes, true),
        (Route::Download, HostMemory::Pageable, bytes / 2, false),
        (Route::OnDevice, HostMemory::Unknown, bytes, true),
    ] {
        let site = find(Operation::Copy, route, memory);
        assert_eq!(
            (site.totals.calls, site.totals.bytes, site.is_async),
            (1, expected_bytes, is_async)
        );
    }
    let rows = find(Operation::CopyRows, Route::Upload, HostMemory::Pageable);
    assert_eq!(rows.totals.bytes, 25_600);
    let batch = find(Operation::CopyBatch, Route::Upload, HostMemory::Pinned);
    assert_eq!((batch.totals.bytes, batch.is_async), (3072, true));
    for (operation, memory) in [
        (Operation::Allocate, HostMemory::Pinned),
        (Operation::Allocate, HostMemory::WriteCombined),
        (Operation::Register, HostMemory::Registered),
        (Operation::Unregister, HostMemory::Registered),
        (Operation::Free, HostMemory::Pinned),
        (Operation::WaitForStream, HostMemory::Unknown),
        (Operation::WaitForEvent, HostMemory::Unknown),
        (Operation::WaitForContext, HostMemory::Unknown),
        (Operation::RecordEvent, HostMemory::Unknown),
        (Operation::CreateStream, HostMemory::Unknown),
    ] {
        assert!(find(operation, Route::Unknown, memory).totals.calls > 0);
    }
    let refused = find(Operation::Free, Route::Unknown, HostMemory::Registered);
    assert_eq!((refused.totals.failures, refused.totals.bytes), (1, bytes));
}

#[test]
fn events_have_streams_and_addresses() {
    let stage = Stage::new().unwrap();
    let (_, recordings) = trace(&stage, &compile(&stage, "trace_calls"), &[]);
    let events = &recordings[0].events;
    assert!(events.is_sorted_by_key(|event| event.start_ns));
    let one = |operation, memory| {
        let mut events = events.iter();
        *events
            .find(|it| it.operation == operation && it.memory == memory && it.result == 0)
            .unwrap()
    };
    let (allocated, freed) = (
        one(Operation::Allocate, HostMemory::Pinned),
        one(Operation::Free, HostMemory::Pinned),
    );
    let copied = one(Operation::Copy, HostMemory::Pinned);
    assert_ne!(allocated.host, 0);
    assert_eq!([copied.host, freed.host], [allocated.host; 2]);
    assert_eq!(
        copied.stream,
        one(Operation::WaitForStream, HostMemory::Unknown).stream
    );
    assert!(copied.stream > 2);
    let (recorded, waited) = (
        one(Operation::RecordEvent, HostMemory::Unknown),
        one(Operation::WaitForEvent, HostMemory::Unknown),
    );
    assert_eq!(recorded.other, waited.other);
    assert_eq!(
        one(Operation::Copy, HostMemory::Registered).stream,
        2,
        "the thread's default stream"
    );
}

#[test]
fn a_killed_program_leaves_its_trace() {
    let stage = Stage::new().unwrap();
    let (status, recordings) = trace(&stage, &compile(&stage, "trace_calls"), &["killed"]);
    assert_eq!(status.signal(), Some(9));
    assert_eq!(recordings[0].end_ns, None);
    let uploads = find(
        &recordings[0],
        Operation::Copy,
        Route::Upload,
        HostMemory::Pageable,
    );
    assert_eq!(uploads.totals.calls, 3);
}

#[test]
fn without_a_folder_the_program_runs_as_ever() {
    let stage = Stage::new().unwrap();
    let program = compile(&stage, "trace_calls");
    let mut command = stage.command(&program);
    command
        .env("LD_PRELOAD", library())
        .env(variables::BOOST, "0");
    command.env(variables::TRACE_FOLDER, stage.folder().join("missing"));
    assert!(command.status().unwrap().success());
    assert!(
        command
            .env_remove(variables::TRACE_FOLDER)
            .status()
            .unwrap()
            .success()
    );
}

/// The version of a Python interpreter, such as `(3, 11)`; `None` if there is none.
fn python_version(python: &Path) -> Option<(u32, u32)> {
    let version = "import sys; print(*sys.version_info[:2])";
    let output = Command::new(python).args(["-c", version]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[test]
fn python_calls_have_their_line() {
    let named = env::var_os("PINLANE_TEST_PYTHON").map(PathBuf::from);
    let usual = ["python3", "python3.11", "python3.12", "python3.13"].map(PathBuf::from);
    let pythons = named.into_iter().chain(usual);
    let known = pythons.filter(|python| matches!(python_version(python), Some((3, 11..=13))));
    let known: Vec<_> = known.collect();
    if known.is_empty() {
        eprintln!("skipped: no Python 3.11 to 3.13; set PINLANE_TEST_PYTHON");
    }
    known.iter().for_each(|python| check_python_lines(python));
    known.iter().for_each(|python| check_descriptors(python));
}

/// Files of the program are its own, whatever descriptors it has closed.
fn check_descriptors(python: &Path) {
    let stage = Stage::new().unwrap();
    let script = programs().join("closed_descriptors.py");
    let (status, _) = trace(&stage, python, &[script.to_str().unwrap()]);
    assert!(status.success());
}

fn check_python_lines(python: &Path) {
    let stage = Stage::new().unwrap();
    let script = programs().join("trace_calls.py");
    let (status, recordings) = trace(&stage, python, &[script.to_str().unwrap()]);
    assert!(status.success());
    let [recording] = &recordings[..] else {
        panic!("{}: {recordings:#?}", python.display());
    };
    assert_eq!(recording.python, PythonLines::Known);
    let source = fs::read_to_string(&script).unwrap();
    for (route, calls, code, functions) in [
        (
            Route::Upload,
            3,
            "check(cuda.cuMemcpyHtoD_v2(device, data, BYTES))",
            ["upload", "main", "<module>"],
        ),
        (
            Route::Download,
            1,
            "check(cuda.cuMemcpyDtoH_v2(data, device, BYTES))",
            ["in_thread", "run", "_bootstrap_inner"],
        ),
    ] {
        let site = find(recording, Operation::Copy, route, HostMemory::Pageable);
        assert_eq!(site.totals.calls, calls, "one site for all calls of a line");
        let expected_line = 1 + source.lines().position(|line| line.trim() == code).unwrap();
        let names = site.frames.iter().map_while(|frame| match frame {
            Frame::Python {
                file,
                line,
                function,
            } => Some((file, *line, function.as_str())),
            Frame::Native { .. } => None,
        });
        let names: Vec<_> = names.collect();
        assert_eq!(
            (names[0].0.as_str(), names[0].1 as usize),
            (script.to_str().unwrap(), expected_line)
        );
        let found: Vec<&str> = names
            .iter()
            .take(3)
            .map(|(_, _, function)| *function)
            .collect();
        assert_eq!(found, functions);
    }
}

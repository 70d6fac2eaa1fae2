//! Exported symbols, results of `cuGetProcAddress`, and how to hide both.

mod support;

use std::collections::BTreeSet;
use std::ffi::{CString, c_char, c_int, c_void};

use libloading::Library;
use pinlane_simcuda::testing::{Stage, library};
use support::{complaints, in_child, whole};

type GetProcAddress = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64) -> u32;
type GetProcAddressV2 =
    unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut u32) -> u32;
type NoArguments = unsafe extern "C" fn() -> u32;

const FOUND: u32 = 0;
const NOT_FOUND: u32 = 1;
const VERSION_NOT_SUFFICIENT: u32 = 2;
const PER_THREAD: u64 = 2;

fn load(path: &std::path::Path) -> Library {
    // SAFETY: loading the library runs none of its code.
    unsafe { Library::new(path) }.expect("the library loads")
}

fn address(library: &Library, symbol: &str) -> Option<usize> {
    // SAFETY: the symbol is only looked at, not called.
    let found = unsafe { library.get::<NoArguments>(symbol) };
    found.ok().map(|symbol| *symbol as usize)
}

/// Calls `cuGetProcAddress_v2`: result, address and status.
fn ask(library: &Library, name: &str, version: c_int, flags: u64) -> (u32, usize, u32) {
    let name = CString::new(name).unwrap();
    let (mut found, mut status) = (std::ptr::without_provenance_mut(1), u32::MAX);
    // SAFETY: the type is that of the driver API, and all pointers are valid for the call.
    let result = unsafe {
        let ask = library
            .get::<GetProcAddressV2>("cuGetProcAddress_v2")
            .unwrap();
        ask(name.as_ptr(), &mut found, version, flags, &mut status)
    };
    (result, found.addr(), status)
}

#[test]
fn every_driver_symbol_that_cudarc_knows_is_exported() {
    let library = load(&library().unwrap());
    let names = include_str!("cudarc-12080.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let missing: Vec<_> = names
        .filter(|name| address(&library, name).is_none())
        .collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn every_listed_name_resolves_to_its_symbol() {
    let library = load(&library().unwrap());
    let mut names = BTreeSet::new();
    let lines = include_str!("../src/api.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    for line in lines {
        let words: Vec<_> = line.split_whitespace().collect();
        let [name, since, symbol, per_thread, ..] = words[..] else {
            panic!("a line of at least four words: {line}");
        };
        let since = since.parse().unwrap();
        let expected = address(&library, symbol).unwrap_or_else(|| panic!("{symbol} is missing"));
        assert_eq!(
            ask(&library, name, since, 0),
            (0, expected, FOUND),
            "{line}"
        );
        let apart = ask(&library, name, since, PER_THREAD);
        match per_thread {
            "-" => assert_eq!(apart, (0, 0, VERSION_NOT_SUFFICIENT), "{line}"),
            symbol => assert_eq!(apart.1, address(&library, symbol).unwrap(), "{line}"),
        }
        names.insert(name);
    }
    assert!(names.len() > 400);
}

#[test]
fn missing_functions_are_reported_as_by_a_real_driver() {
    let library = load(&library().unwrap());
    assert_eq!(ask(&library, "cuNoSuchCall", 13000, 0), (0, 0, NOT_FOUND));
    assert_eq!(ask(&library, "cuMemAlloc_v2", 13000, 0), (0, 0, NOT_FOUND));
    assert_eq!(
        ask(&library, "cuMemcpyBatchAsync", 12000, 0),
        (0, 0, VERSION_NOT_SUFFICIENT)
    );
    assert_eq!(ask(&library, "cuMemAlloc", 99000, 0), (1, 1, u32::MAX));
    assert_eq!(ask(&library, "cuMemAlloc", 13000, 4), (1, 1, u32::MAX));

    // The older form has no status: a missing function is an error.
    let mut found = std::ptr::without_provenance_mut(1);
    // SAFETY: the type is that of the driver API, and all pointers are valid for the call.
    let result = unsafe {
        let ask = library.get::<GetProcAddress>("cuGetProcAddress").unwrap();
        ask(c"cuNoSuchCall".as_ptr(), &mut found, 13000, 0)
    };
    assert_eq!((result, found.addr()), (500, 1));
}

#[test]
fn an_export_can_be_hidden() {
    let stage = Stage::without(&["cuMemcpyBatchAsync", "cuMemAllocAsync"]).unwrap();
    let library = load(&stage.driver());
    assert_eq!(address(&library, "cuMemcpyBatchAsync"), None);
    assert_eq!(address(&library, "cuMemAllocAsync"), None);
    assert!(address(&library, "cuMemcpyBatchAsync_v2").is_some());
    assert!(address(&library, "cuMemFreeAsync").is_some());
    assert_eq!(
        ask(&library, "cuMemAllocAsync", 13000, 0),
        (0, 0, NOT_FOUND)
    );

    let unknown = Stage::without(&["cuNoSuchCall"]).expect_err("refused");
    assert!(unknown.to_string().contains("cuNoSuchCall"), "{unknown}");
}

#[test]
fn an_older_driver_has_fewer_names() {
    let program = || {
        let library = load("libcuda.so.1".as_ref());
        assert_eq!(
            ask(&library, "cuMemcpyBatchAsync", 11020, 0),
            (0, 0, NOT_FOUND)
        );
        assert_eq!(ask(&library, "cuMemAllocAsync", 11020, 0).2, FOUND);
        assert_eq!(ask(&library, "cuMemAllocAsync", 12000, 0).0, 1);
        let mut version = 0;
        // SAFETY: the type is that of the driver API, and the pointer is valid for the call.
        let result = unsafe {
            type GetVersion = unsafe extern "C" fn(*mut c_int) -> u32;
            library.get::<GetVersion>("cuDriverGetVersion").unwrap()(&mut version)
        };
        assert_eq!((result, version), (0, 11020));
    };
    in_child(
        whole,
        "an_older_driver_has_fewer_names",
        &[("VERSION", "11020")],
        program,
    );
}

#[test]
fn a_setting_hides_names_from_proc_address() {
    let program = || {
        let library = load("libcuda.so.1".as_ref());
        assert_eq!(
            ask(&library, "cuMemAllocAsync", 13000, 0),
            (0, 0, NOT_FOUND)
        );
        assert_eq!(ask(&library, "cuMemFreeAsync", 13000, 0).2, FOUND);
    };
    let settings = [("OMIT", "cuMemAllocAsync")];
    in_child(
        whole,
        "a_setting_hides_names_from_proc_address",
        &settings,
        program,
    );
}

#[test]
fn unsupported_calls_are_reported_by_name() {
    let program = || {
        let library = load("libcuda.so.1".as_ref());
        for symbol in ["cuGraphCreate", "cuGraphCreate", "cuTexObjectCreate"] {
            // SAFETY: the function reads no arguments.
            let result = unsafe { library.get::<NoArguments>(symbol).unwrap()() };
            assert_eq!(result, 801);
        }
    };
    let Some(report) = in_child(
        whole,
        "unsupported_calls_are_reported_by_name",
        &[],
        program,
    ) else {
        return;
    };
    assert_eq!(
        complaints(&report),
        [
            "unsupported: cuGraphCreate, 2 calls",
            "unsupported: cuTexObjectCreate, 1 call"
        ]
    );
}

//! A logger that panics, or a stderr that cannot be written to, breaks no promise.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once};

use pinlane::{Budget, Device, PinnedPool};
use pinlane_core::internal::pinned_store;
use pinlane_driver::{Call, Error, ErrorKind, Hook, Intercepted};

/// Panics at every message, after it has noted it.
struct PanickingLogger;

static LOGGED: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl log::Log for PanickingLogger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        LOGGED.lock().unwrap().push(record.args().to_string());
        panic!("on purpose");
    }

    fn flush(&self) {}
}

fn install_panicking_logger() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        log::set_logger(&PanickingLogger).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
    });
}

/// How many messages contain `part`.
fn logged(part: &str) -> usize {
    let messages = LOGGED.lock().unwrap();
    messages.iter().filter(|text| text.contains(part)).count()
}

#[test]
fn a_logger_that_panics_does_not_cut_the_shutdown_short() {
    install_panicking_logger();
    let sim = pinlane_testing::sim();
    let budget = Budget::with_limit(1 << 20);
    let device = Device::with_budget(sim.driver(), &budget);
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(8192).unwrap();
    let idle = pinned_store(&device).take::<u8>(4096).unwrap();
    let in_flight = pinned_store(&device).take::<u8>(8192).unwrap();
    drop(idle);
    sim.hold();
    drop(stream.upload(in_flight, &mut target).unwrap());
    drop((target, stream));
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(device)));
    assert_eq!(logged("at shutdown"), 1);
    assert!(dropped.is_ok(), "the panic came out of the drop");
    assert_eq!(budget.in_use_bytes(), 8192, "only the block in flight");
    sim.release();
}

#[test]
fn a_logger_that_panics_does_not_keep_pageable_memory_from_anybody() {
    install_panicking_logger();
    let device = Device::with_budget(pinlane_testing::sim().driver(), &Budget::with_limit(0));
    let pool = PinnedPool::new(&device);
    for _ in 0..2 {
        let taken = catch_unwind(AssertUnwindSafe(|| pool.take_or_pageable::<u8>(100)));
        let buffer = taken.expect("no panic").unwrap();
        assert!(!buffer.is_pinned());
    }
    assert_eq!(logged("using pageable memory"), 1);
}

#[test]
fn a_logger_that_panics_does_not_fail_a_copy() {
    install_panicking_logger();
    let device = Device::with_budget(pinlane_testing::sim().driver(), &Budget::with_limit(0));
    let stream = device.stream().unwrap();
    let numbers = pinlane_testing::words(1 << 20, 1);
    let mut target = device.alloc::<u32>(numbers.len()).unwrap();
    let copy = || stream.copy_to_device(&numbers, &mut target);
    let copied = catch_unwind(AssertUnwindSafe(copy));
    copied.expect("no panic").unwrap();
    assert_eq!(logged("no pinned memory"), 1);
    assert!(stream.copy_to_vec(&target).unwrap() == numbers);
}

/// Refuses to wait for anything, once it is armed.
struct NeverDone(Arc<AtomicBool>);

// SAFETY: its error is not fatal.
unsafe impl Hook for NeverDone {
    fn before(&self, call: Call) -> pinlane_driver::Result<()> {
        let waits = [
            Call::StreamSynchronize,
            Call::EventSynchronize,
            Call::Synchronize,
        ];
        match self.0.load(Ordering::Relaxed) && waits.contains(&call) {
            true => Err(Error::new(ErrorKind::Other { code: 77 }, "trap")),
            false => Ok(()),
        }
    }
}

/// Runs a test of this file in a process of its own, which cannot write to its stderr. Returns the signal
/// that ended it.
fn signal_of_child(test: &str) -> Option<i32> {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(IN_CHILD, "1")
        .stdout(Stdio::null())
        .stderr(full)
        .status();
    child.unwrap().signal()
}

const IN_CHILD: &str = "PINLANE_TEST_IN_CHILD";

/// Otherwise the caller could free memory that the device still uses.
#[test]
fn a_full_stderr_does_not_stop_an_abort_over_borrowed_memory() {
    const NAME: &str = "a_full_stderr_does_not_stop_an_abort_over_borrowed_memory";
    if std::env::var_os(IN_CHILD).is_none() {
        assert_eq!(signal_of_child(NAME), Some(libc::SIGABRT));
        return;
    }
    let armed = Arc::new(AtomicBool::new(false));
    let driver = Intercepted::new(
        pinlane_testing::sim().driver(),
        NeverDone(Arc::clone(&armed)),
    );
    let device = Device::from_driver(Arc::new(driver));
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(4096).unwrap();
    armed.store(true, Ordering::Relaxed);
    let copy = || stream.driver_copy_to_device(&[1; 4096], &mut target);
    let _ = catch_unwind(AssertUnwindSafe(copy));
    std::process::exit(0); // the memory is free again
}

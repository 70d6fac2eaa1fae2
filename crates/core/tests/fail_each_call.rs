//! For every scenario and every k: the k-th driver call fails, once. The error comes out typed,
//! nothing leaks, nothing is freed twice, and no buffer is touched in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pinlane::{Device, Error};
use pinlane_conformance::library::{SCENARIOS, Scenario};
use pinlane_driver::{Call, ErrorKind, Hook, Intercepted, Result};

const INJECTED: ErrorKind = ErrorKind::Other { code: 4242 };

/// Fails call number `at`, counted from 1; 0 fails none.
struct FailAt {
    at: u64,
    calls: Arc<AtomicU64>,
}

// SAFETY: its only error is not fatal.
unsafe impl Hook for FailAt {
    fn before(&self, call: Call) -> Result<()> {
        if self.calls.fetch_add(1, Ordering::Relaxed) + 1 == self.at {
            let error = pinlane_driver::Error::new(INJECTED, "injected");
            return Err(error.with_detail(format!("{call:?}")));
        }
        Ok(())
    }
}

fn is_injected(error: &Error) -> bool {
    matches!(error, Error::Driver(error) if error.kind == INJECTED)
}

/// How many calls the scenario made.
fn run_with_failure(Scenario { name, run }: &Scenario, at: u64) -> u64 {
    let sim = pinlane_testing::sim();
    let calls = Arc::new(AtomicU64::new(0));
    let hook = FailAt {
        at,
        calls: Arc::clone(&calls),
    };
    let device = Device::from_driver(Arc::new(Intercepted::new(sim.driver(), hook)));
    device.keep_pinned_memory(0); // so that the simulator sees what is freed too early
    let result = run(&device);
    let during = calls.load(Ordering::Relaxed);
    let stray = device.take_stray_errors();
    let tidied: Vec<_> = (0..3).map(|_| device.synchronize()).collect();
    assert!(
        tidied.iter().filter(|result| result.is_err()).count() <= 1,
        "{name}, call {at}: the failure lingers, {tidied:?}"
    );
    device.trim(); // a failure may strike the one of the check
    pinlane_testing::assert_empty(&device);
    drop(device);

    let told = result.as_ref().is_err_and(is_injected) || stray.iter().any(is_injected);
    assert_eq!(
        told,
        (1..=during).contains(&at),
        "{name}, call {at} of {during}: {result:?}, stray {stray:?}"
    );
    let unexpected = result.err().filter(|error| !is_injected(error));
    assert_eq!(unexpected, None, "{name}, call {at}: another error");
    assert_eq!(sim.finish(), [], "{name}, call {at}");
    calls.load(Ordering::Relaxed)
}

#[test]
fn a_failure_of_any_call_is_told_and_leaks_nothing() {
    let mut failures = 0;
    for scenario in SCENARIOS {
        if pinlane_testing::too_much_for_miri(scenario.name) {
            continue;
        }
        let calls = run_with_failure(scenario, 0);
        // The device's own shutdown makes calls, too.
        let step = if cfg!(miri) { 7 } else { 1 };
        for at in (1..=calls).step_by(step) {
            run_with_failure(scenario, at);
            failures += 1;
        }
    }
    println!("{failures} failures injected");
    assert!(failures > 100);
}

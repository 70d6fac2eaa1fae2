//! Devices that cannot tell whether a copy is done: nothing waits forever, and a batch that may not have
//! arrived does not count.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinlane::load::{Batch, Loader, LoaderError};
use pinlane::{Budget, Device, Error};
use pinlane_driver::{Call, Hook, Intercepted};
use pinlane_sim::{FaultKind, Faults, Sim};

use super::support::{Made, Rig, config, drain};
use pinlane_testing::{INJECTED, Spring, Trap, is_injected};
use pinlane_testing::{must_return, open, profile, sim};

/// While set, calls that wait for the device fail.
#[derive(Clone)]
struct Deaf(Arc<AtomicBool>, &'static [Call]);

// SAFETY: its only error is not fatal.
unsafe impl Hook for Deaf {
    fn before(&self, call: Call) -> pinlane_driver::Result<()> {
        match self.0.load(Ordering::SeqCst) && self.1.contains(&call) {
            true => Err(pinlane_driver::Error::new(INJECTED, "deaf")),
            false => Ok(()),
        }
    }
}

/// A device with pinned memory for one batch, on which these calls can be made to fail.
fn with_one_slot(calls: &'static [Call]) -> (Rig, Arc<AtomicBool>) {
    let sim = sim();
    let deaf = Deaf(Arc::default(), calls);
    let driver = Intercepted::new(sim.driver(), deaf.clone());
    let device = Device::with_budget(Arc::new(driver), &Budget::with_limit(4096));
    (Rig::with(sim, device), deaf.0)
}

/// The only slot is lost with a copy of an earlier epoch, and pinning another one fails.
#[test]
fn no_slot_is_left() {
    const WAITS: &[Call] = &[
        Call::EventQuery,
        Call::EventSynchronize,
        Call::EventWaitTimeout,
        Call::StreamSynchronize,
        Call::Synchronize,
    ];
    for workers in [0, 1, 3] {
        must_return(move || {
            let (rig, deaf) = with_one_slot(WAITS);
            let loader = rig.loader(Made::new(4), config(4, workers));
            let first = loader.epoch(0).expect("no epoch is running").next();
            first.expect("a batch").expect("no error");

            deaf.store(true, Ordering::SeqCst);
            let first = loader.epoch(0).expect("the last was dropped").next();
            let error = first.expect("an error").expect_err("there is no memory");
            let over = |error: &LoaderError| match error {
                LoaderError::Device { error, .. } => matches!(error, Error::OverBudget { .. }),
                _ => false,
            };
            assert!(over(&error), "{error}");

            deaf.store(false, Ordering::SeqCst);
            rig.device.synchronize().expect("it hears again");
            let again: Result<Vec<Batch>, _> = loader.epoch(0).expect("it has ended").collect();
            assert_eq!(again.expect("the memory is back").len(), 1);
            drop(loader);
            let stray = rig.device.take_stray_errors();
            assert!(stray.iter().all(is_injected), "{stray:?}");
            rig.assert_clean();
        });
    }
}

/// A copy that never ends, and whose state cannot be queried.
#[test]
fn a_copy_that_cannot_be_waited_for() {
    for workers in [0, 2] {
        let (rig, loader) = must_return(move || {
            let (rig, deaf) = with_one_slot(&[Call::EventWaitTimeout]);
            let loader = rig.loader(Made::new(40), config(4, workers));
            rig.sim.hold();
            deaf.store(true, Ordering::SeqCst);
            let mut epoch = loader.epoch(0).expect("no epoch is running");
            epoch.next().expect("a batch").expect("it was submitted");
            let error = epoch.next().expect("an error").expect_err("no slot");
            let text = error.to_string();
            assert!(
                matches!(error, LoaderError::Device { batch: 0, .. }),
                "{text}"
            );
            assert_eq!(loader.state().batch, 0, "nobody knows whether it got there");
            deaf.store(false, Ordering::SeqCst);
            drop(epoch);
            (rig, loader)
        });
        rig.sim.release();
        rig.device.synchronize().expect("it gets on");
        drop(loader);
        rig.assert_clean();
    }
}

/// A failed wait is an error, but its batch reached the device and counts.
#[test]
fn a_failed_wait_does_not_lose_the_batch() {
    let mut sprung = 0;
    for at in 0..20 {
        sprung += must_return(move || {
            let sim = sim();
            let (device, trap) = Trap::under(&sim);
            let rig = Rig::with(sim, device);
            let mut config = config(4, 0);
            config.pinned_bytes = 1;
            let loader = rig.loader(Made::new(40), config);
            trap.set(Call::EventWaitTimeout, at, Spring::Fail);
            let outcomes: Vec<_> = loader.epoch(0).expect("no epoch is running").collect();
            let sprung = trap.disarm();
            let good = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            assert_eq!(loader.state().batch, good as u64);
            assert_eq!(outcomes.len() - good, sprung as usize);
            drop((outcomes, loader));
            rig.assert_clean();
            sprung
        });
    }
    assert!(sprung >= 5, "only {sprung} failures");
}

/// Copies that fail on the device after their batches were handed out: those batches do not count.
#[test]
fn what_was_handed_out_and_did_not_get_there_comes_again() {
    let mut struck = 0;
    for seed in 0..40 {
        for workers in [0, 2] {
            struck += must_return(move || {
                let faults = Faults::none().with(FaultKind::LateError, 60);
                let sim = Sim::builder()
                    .profile(profile())
                    .seed(seed)
                    .faults(faults)
                    .build();
                let device = open(&sim);
                let made = Loader::new(&device, Made::new(38), config(3, workers));
                let loader = made.expect("nothing is copied yet");
                let epoch = loader.epoch(1).expect("no epoch is running");
                let outcomes: Vec<_> = epoch.collect();
                let good = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
                let state = loader.state();
                let Some(Err(error)) = outcomes.last() else {
                    assert_eq!(state.batch, 13);
                    return 0;
                };
                let LoaderError::Device { batch, .. } = error else {
                    panic!("{error:?}");
                };
                assert!(state.batch <= *batch && state.batch <= good as u64);

                // Another loader can read the remaining batches.
                let rig = Rig::new();
                let loader = rig.loader(Made::new(38), config(3, workers));
                let mut rest = Vec::new();
                for batch in loader.restore(&state).expect("the same order") {
                    rest.extend(batch.expect("no error").indices().to_vec());
                }
                assert!(rest.into_iter().eq(3 * state.batch as usize..38));
                drop(loader);
                rig.assert_clean();
                1
            });
        }
    }
    assert!(struck > 20, "only {struck} failures");
}

#[test]
fn a_failure_that_is_known_at_the_end_only() {
    for workers in [0, 2] {
        must_return(move || {
            let faults = Faults::none().with(FaultKind::LateError, 1000);
            let sim = Sim::builder().profile(profile()).faults(faults).build();
            let device = open(&sim);
            let made = Loader::new(&device, Made::new(6), config(3, workers));
            let loader = made.expect("nothing is copied yet");
            let outcomes: Vec<_> = loader.epoch(0).expect("no epoch is running").collect();
            assert!(outcomes.iter().any(Result::is_err), "{outcomes:?}");
            assert_eq!(loader.state().batch, 0, "{outcomes:?}");
        });
    }
}

/// An epoch at its end is no error, and stays at its end.
#[test]
fn without_a_failure_all_counts() {
    let (rig, _) = with_one_slot(&[]);
    let loader = rig.loader(Made::new(40), config(4, 1));
    let (batches, error) = drain(&rig, loader.epoch(0).expect("no epoch is running"));
    assert!(batches.len() == 10 && error.is_none());
    assert_eq!(loader.state().batch, 10);
    drop(loader);
    rig.device.synchronize().expect("the device is alive");
}

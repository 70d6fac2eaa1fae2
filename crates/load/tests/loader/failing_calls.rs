//! Every driver call fails in turn: the error is reported, nothing hangs or leaks, and the next epoch works.

use pinlane::Normalize;
use pinlane::load::{Batch, DeviceTransform, Dtype, Loader, LoaderConfig, LoaderError};
use pinlane_driver::Call;
use pinlane_sim::{FaultKind, Faults};

use super::support::{Made, Rig, config};
use pinlane_testing::{Spring, Trap, is_injected};
use pinlane_testing::{must_return, sim};

/// Driver calls of an epoch.
const CALLS: [Call; 13] = [
    Call::CopyAsync,
    Call::StreamWaitEvent,
    Call::StreamSynchronize,
    Call::EventCreate,
    Call::EventRecord,
    Call::EventQuery,
    Call::EventSynchronize,
    Call::EventWaitTimeout,
    Call::EventElapsed,
    Call::Launch,
    Call::HostAlloc,
    Call::DeviceAllocAsync,
    Call::DeviceFreeAsync,
];

fn injected(error: &LoaderError) -> bool {
    match error {
        LoaderError::Device { error, .. } | LoaderError::Setup(error) => is_injected(error),
        _ => false,
    }
}

fn setup(workers: usize) -> LoaderConfig {
    let scale = DeviceTransform::U8ToF32 {
        scale: 1.0,
        offset: 0.0,
    };
    let normalize = DeviceTransform::Normalize {
        normalize: Normalize::new(&[0.5; 3], &[1.0; 3], 4).expect("three channels"),
        to: Dtype::Bf16,
    };
    config(4, workers).device_transforms(vec![
        ("image".to_owned(), normalize),
        ("text".to_owned(), scale),
    ])
}

/// Run an epoch and check it.
fn run(loader: &Loader) -> Result<(), LoaderError> {
    let batches: Result<Vec<Batch>, _> = loader.epoch(0)?.collect();
    let numbers = batches?.into_iter().map(|batch| batch.number());
    assert!(numbers.eq(0..8));
    Ok(())
}

/// Whether the trap sprang.
fn fail_once(workers: usize, call: Call, at: u64) -> bool {
    let what = format!("{workers} threads, {call:?} {at}");
    let sim = sim();
    let (device, trap) = Trap::under(&sim);
    let rig = Rig::with(sim, device);
    let loader = rig.loader(Made::new(30), setup(workers));
    trap.set(call, at, Spring::Fail);
    let ran = run(&loader);
    let again = run(&loader);
    drop(loader);
    let sprung = trap.disarm() > 0;
    let stray = rig.device.take_stray_errors();
    let is_reported = |ran: &Result<(), LoaderError>| ran.as_ref().is_err_and(injected);
    let reported = is_reported(&ran) || is_reported(&again) || stray.iter().any(is_injected);
    assert_eq!(reported, sprung, "{what}: {ran:?}, {again:?}, {stray:?}");
    for ran in [&ran, &again] {
        assert!(ran.as_ref().err().is_none_or(injected), "{what}: {ran:?}");
    }
    assert!(ran.is_ok() || again.is_ok(), "{what}: it struck once");
    rig.assert_clean();
    sprung
}

fn fail_each(workers: usize) {
    let mut sprung = 0;
    for call in CALLS {
        sprung += must_return(move || {
            // Until there is no further call of this kind.
            let strikes = |at: &u64| fail_once(workers, call, *at);
            (0..60).take_while(strikes).count()
        });
    }
    assert!(sprung > 150, "only {sprung} failures");
}

#[test]
fn alone() {
    fail_each(0);
}

#[test]
fn one_thread() {
    fail_each(1);
}

#[test]
fn some_threads() {
    fail_each(3);
}

/// A driver panic ends the epoch with its message. It neither hangs nor unwinds through a consumer that reads
/// samples itself.
#[test]
fn a_panic_of_the_driver() {
    for call in [Call::CopyAsync, Call::HostAlloc, Call::Launch] {
        for (at, workers) in (0..5).flat_map(|at| [(at, 0), (at, 2)]) {
            must_return(move || {
                let sim = sim();
                let (device, trap) = Trap::under(&sim);
                let rig = Rig::with(sim, device);
                let loader = rig.loader(Made::new(30), setup(workers));
                trap.set(call, at, Spring::Panic);
                let ran = run(&loader);
                let sprung = trap.disarm() > 0;
                if sprung {
                    let error = ran.expect_err("a thread died");
                    let what = format!("{workers} threads, {call:?} {at}: {error}");
                    assert!(
                        matches!(error, LoaderError::LoaderPanicked { .. }),
                        "{what}"
                    );
                    assert!(what.ends_with(": on purpose"), "{what}");
                }
                run(&loader).expect("the driver is well again");
            });
        }
    }
}

#[test]
fn a_loader_that_cannot_be_made() {
    for call in [Call::StreamCreate, Call::ModuleLoad, Call::ModuleFunction] {
        let sim = sim();
        let (device, trap) = Trap::under(&sim);
        let rig = Rig::with(sim, device);
        trap.set(call, 0, Spring::Fail);
        let made = Loader::new(&rig.device, Made::new(30), setup(1));
        assert_eq!(trap.disarm(), 1);
        assert!(made.as_ref().is_err_and(injected), "{made:?}");
        rig.assert_clean();
    }
}

/// Copies that fail on the device after they were submitted: fewer batches than slots, so only the end of the
/// epoch notices.
#[test]
fn a_copy_that_fails_late() {
    for workers in [0, 2] {
        must_return(move || {
            let sim = pinlane_sim::Sim::builder()
                .profile(pinlane_testing::profile())
                .faults(Faults::none().with(FaultKind::LateError, 1000))
                .build();
            let device = pinlane_testing::open(&sim);
            let loader = Loader::new(&device, Made::new(6), config(3, workers));
            let loader = loader.expect("nothing is copied yet");
            let outcomes: Vec<_> = loader.epoch(0).expect("no epoch is running").collect();
            let (last, first) = outcomes.split_last().expect("at least the error");
            assert!(first.iter().all(Result::is_ok), "{outcomes:?}");
            assert!(matches!(last, Err(LoaderError::Device { .. })), "{last:?}");
        });
    }
}

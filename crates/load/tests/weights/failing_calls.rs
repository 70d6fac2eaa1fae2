//! Every driver call fails or panics in turn: the load returns the error, nothing hangs or leaks, and the
//! next load works.

use pinlane::load::{Dtype, LoadConfig, LoadError, LoadErrorKind, Tensor, Weights};
use pinlane_driver::Call;
use pinlane_sim::{FaultKind, Faults, Sim};

use super::rig::{MODEL, Rig, config, file, model};
use super::support::Scratch;
use pinlane_testing::{Spring, Trap, is_injected, misuse};
use pinlane_testing::{must_return, open, profile, sim};

/// The driver calls of a load.
const CALLS: [Call; 13] = [
    Call::CopyAsync,
    Call::StreamCreate,
    Call::StreamDestroy,
    Call::StreamWaitEvent,
    Call::StreamSynchronize,
    Call::EventCreate,
    Call::EventRecord,
    Call::EventQuery,
    Call::EventSynchronize,
    Call::HostAlloc,
    Call::HostFree,
    Call::DeviceAllocAsync,
    Call::DeviceAlloc,
];

fn injected(error: &LoadError) -> bool {
    matches!(error.kind(), LoadErrorKind::Device { error } if is_injected(error))
}

fn run(rig: &Rig, weights: &Weights, config: &LoadConfig) -> Result<(), LoadError> {
    let tensors = weights.load(&rig.device, config)?;
    assert_eq!(tensors.len(), MODEL.len());
    for tensor in tensors.iter() {
        rig.check(weights, tensor, config);
    }
    Ok(())
}

/// Returns whether the call was reached.
fn fail_once(weights: &Weights, config: &LoadConfig, call: Call, at: u64) -> bool {
    let what = format!("{config:?}, {call:?} {at}");
    let sim = sim();
    let (device, trap) = Trap::under(&sim);
    let rig = Rig::with(sim, device);
    trap.set(call, at, Spring::Fail);
    let ran = weights.load(&rig.device, config);
    let sprung = trap.disarm() > 0;
    let stray = rig.device.take_stray_errors();
    let reported = ran.as_ref().is_err_and(injected) || stray.iter().any(is_injected);
    assert_eq!(reported, sprung, "{what}: {ran:?}, {stray:?}");
    match &ran {
        Ok(tensors) => tensors
            .iter()
            .for_each(|tensor| rig.check(weights, tensor, config)),
        Err(error) => assert!(injected(error), "{what}: {error}"),
    }
    drop(ran);
    run(&rig, weights, config).unwrap_or_else(|error| panic!("{what}: {error} lingers"));
    rig.assert_clean();
    sprung
}

fn fail_each(config: &LoadConfig, at_least: usize) {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let mut sprung = 0;
    for call in CALLS {
        let (weights, config) = (weights.clone(), config.clone());
        sprung += must_return(move || {
            // Until there are no more such calls.
            let strikes = |at: &u64| fail_once(&weights, &config, call, *at);
            (0..60).take_while(strikes).count()
        });
    }
    assert!(sprung > at_least, "only {sprung} failures");
}

#[test]
fn failures_with_one_thread() {
    fail_each(&config(1), 40);
}

#[test]
fn failures_with_several_threads() {
    fail_each(&config(3), 40);
}

#[test]
fn failures_with_conversions() {
    fail_each(&config(2).convert(Dtype::F32), 60);
}

/// If pinning fails, the load continues with the slots it has.
#[test]
fn a_load_continues_with_fewer_slots() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    for _ in 0..30 {
        for at in 1..4 {
            let sim = sim();
            let (device, trap) = Trap::under(&sim);
            let rig = Rig::with(sim, device);
            trap.set(Call::HostAlloc, at, Spring::Fail);
            run(&rig, &weights, &config(3)).expect("there is one slot");
            let sprung = trap.disarm();
            assert_eq!(rig.device.take_stray_errors().len() as u64, sprung);
            rig.assert_clean();
        }
    }
}

#[test]
fn failing_to_pin_anything_is_one_error() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    for threads in [1, 4] {
        let weights = weights.clone();
        must_return(move || {
            let sim = sim();
            let (device, trap) = Trap::under(&sim);
            let rig = Rig::with(sim, device);
            trap.refuse_all(Call::HostAlloc);
            let landing = weights.start(&rig.device, &config(threads));
            let mut errors: Vec<_> = landing
                .expect("it starts")
                .filter_map(Result::err)
                .collect();
            assert!(injected(&errors.pop().expect("it fails")));
            assert!(errors.is_empty(), "{errors:?}");
            let refused = trap.disarm() as usize;
            assert_eq!(rig.device.take_stray_errors().len(), refused - 1);
            rig.assert_clean();
        });
    }
}

/// A driver panic ends the load without hanging.
#[test]
fn driver_panics() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let calls = [
        Call::CopyAsync,
        Call::HostAlloc,
        Call::EventRecord,
        Call::EventSynchronize,
    ];
    let mut sprung = 0;
    for call in calls {
        for at in 0..4 {
            for threads in [1, 3] {
                let weights = weights.clone();
                sprung += must_return(move || {
                    let sim = sim();
                    let (device, trap) = Trap::under(&sim);
                    let rig = Rig::with(sim.clone(), device);
                    trap.set(call, at, Spring::Panic);
                    let ran = weights.load(&rig.device, &config(threads));
                    let sprung = trap.disarm();
                    if sprung > 0 {
                        let error = ran.expect_err("a thread died");
                        let panicked = matches!(error.kind(), LoadErrorKind::Panicked { message } if message == "on purpose");
                        assert!(panicked, "{call:?} {at}: {error}");
                    }
                    run(&rig, &weights, &config(threads)).expect("the driver is well again");
                    drop(rig);
                    assert_eq!(misuse(&sim), [""; 0], "{call:?} {at}");
                    sprung
                });
            }
        }
    }
    assert!(sprung > 15, "only {sprung} panics");
}

/// Copies that fail on the device after submission: their tensors are never returned.
#[test]
fn copies_that_fail_after_submission() {
    let scratch = Scratch::new();
    let one = file(&scratch, "one.safetensors", &[("w", Dtype::U8, &[9])], 1);
    for path in [one, model(&scratch)] {
        for threads in [1, 3] {
            let path = path.clone();
            must_return(move || {
                let weights = Weights::open(&path).expect("a good file");
                let sim = Sim::builder()
                    .profile(profile())
                    .faults(Faults::none().with(FaultKind::LateError, 1000))
                    .build();
                let device = open(&sim);
                let landing = weights.start(&device, &config(threads));
                let outcomes: Vec<_> = landing.expect("it starts").collect();
                let (last, first) = outcomes.split_last().expect("at least the error");
                // Only empty tensors are complete.
                let complete = |tensor: &Result<Tensor, _>| {
                    tensor.as_ref().is_ok_and(|tensor| tensor.name() == "none")
                };
                assert!(first.iter().all(complete), "{outcomes:?}");
                let error = last.as_ref().expect_err("no copy works");
                assert!(
                    matches!(error.kind(), LoadErrorKind::Device { .. }),
                    "{error}"
                );
                assert_eq!(error.file(), Some(path.as_path()));
                assert!(error.tensor().is_some());
                drop(outcomes);
                drop(device);
                assert_eq!(misuse(&sim), [""; 0]);
            });
        }
    }
}

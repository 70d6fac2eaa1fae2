//! Random loaders under adversarial schedules and injected faults: every batch is right or an error,
//! nothing in flight is touched, nothing leaks, and the loader works again unless the device is dead.

use std::collections::BTreeMap;
use std::panic::{catch_unwind, resume_unwind};

use pinlane::load::{DeviceTransform, Dtype, Loader, LoaderConfig, LoaderError, Tail};
use pinlane::{Device, Error, Normalize, Stream};
use pinlane_sim::{FaultKind, Faults, Sim};

use super::support::{Made, check};
use pinlane_testing::SplitMix64;
use pinlane_testing::{assert_empty, must_return, profile};

const SEEDS: u64 = if cfg!(miri) { 10 } else { 2000 };
/// A working device must succeed within this many attempts.
const ATTEMPTS: usize = 60;

/// Outcomes over all seeds.
#[derive(Default)]
struct Tally {
    right: u64,
    failed: u64,
    dead: u64,
    faults: BTreeMap<FaultKind, u64>,
}

/// A third meets no fault, a third those that can be survived, the rest all.
fn faults(random: &mut SplitMix64) -> Faults {
    match random.index(3) {
        0 => Faults::none(),
        1 => Faults::all(4)
            .with(FaultKind::LateError, 0)
            .with(FaultKind::LostDevice, 0)
            .with(FaultKind::StuckCompletion, 0),
        _ => Faults::all(2).with(FaultKind::LostDevice, 1),
    }
}

fn config(random: &mut SplitMix64) -> LoaderConfig {
    LoaderConfig::default()
        .batch(1 + random.index(6))
        .shuffle(random.index(2) == 0)
        .seed(random.next_u64())
        .tail([Tail::Keep, Tail::Drop, Tail::Pad][random.index(3)])
        .workers(Some(random.index(4)))
        .prefetch(1 + random.index(4))
}

/// Whether the error is fatal for the device.
fn is_fatal(error: &Error) -> bool {
    matches!(error, Error::Driver(error) if error.is_fatal())
}

/// Retry until it works. `None` if the device is dead.
fn make<T>(make: impl Fn() -> pinlane::Result<T>) -> Option<T> {
    for _ in 0..ATTEMPTS {
        match make() {
            Ok(made) => return Some(made),
            Err(error) if is_fatal(&error) => return None,
            Err(_) => {}
        }
    }
    panic!("refused {ATTEMPTS} times");
}

fn as_error(error: LoaderError) -> Error {
    match error {
        LoaderError::Setup(error) | LoaderError::Device { error, .. } => error,
        other => panic!("{other:?}"),
    }
}

/// An epoch with every batch compared, sometimes cancelled. Batches are kept and dropped at random.
fn attempt(loader: &Loader, stream: &Stream, seed: u64, finished: bool) -> pinlane::Result<()> {
    let mut random = SplitMix64::new(seed);
    let mut held = Vec::new();
    for batch in loader.epoch(random.next_u64() % 3).map_err(as_error)? {
        let batch = batch.map_err(as_error)?;
        if !finished {
            check(stream, &batch)?;
        }
        held.push(batch);
        while held.len() > random.index(4) {
            held.remove(random.index(held.len()));
        }
        if random.index(20) == 0 {
            break;
        }
    }
    if !finished {
        for batch in &held {
            check(stream, batch)?;
        }
    }
    Ok(())
}

/// A few epochs of one loader. Returns whether the device survived.
fn live(device: &Device, sim: &Sim, random: &mut SplitMix64, tally: &mut Tally) -> bool {
    let mut config = config(random);
    let finished = random.index(3) == 0;
    if finished {
        let finish = match random.index(2) {
            0 => DeviceTransform::U8ToF32 {
                scale: 1.0,
                offset: 0.0,
            },
            _ => DeviceTransform::Normalize {
                normalize: Normalize::new(&[0.5; 3], &[1.0; 3], 1).expect("three channels"),
                to: Dtype::F32,
            },
        };
        config.device_transforms = vec![("image".to_owned(), finish)];
    }
    let samples = random.index(30);
    let new = || Loader::new(device, Made::new(samples), config.clone()).map_err(as_error);
    let (Some(loader), Some(stream)) = (make(new), make(|| device.stream())) else {
        return false;
    };
    for _ in 0..2 {
        let seed = random.next_u64();
        let mut right = false;
        for _ in 0..ATTEMPTS {
            let before = sim.faults_hit();
            match attempt(&loader, &stream, seed, finished) {
                Ok(()) => {
                    tally.right += 1;
                    right = true;
                    break;
                }
                Err(error) => {
                    tally.failed += 1;
                    if is_fatal(&error) {
                        return false;
                    }
                    assert_ne!(
                        sim.faults_hit(),
                        before,
                        "{config:?}: {error}, with no fault"
                    );
                }
            }
        }
        assert!(right, "{config:?}: {ATTEMPTS} attempts failed");
    }
    true
}

fn run(seed: u64, tally: &mut Tally) {
    let mut random = SplitMix64::new(seed);
    let sim = Sim::builder()
        .profile(profile())
        .seed(random.next_u64())
        .faults(faults(&mut random))
        .record_timeline(false)
        .idle_progress(false)
        .build();
    let lived = match make(|| Device::open(&sim, 0)) {
        None => false,
        Some(device) => {
            let lived = live(&device, &sim, &mut random, tally);
            // Twice: the first may hit an injected fault.
            let _ = device.synchronize();
            let _ = device.synchronize();
            assert_empty(&device);
            lived
        }
    };
    tally.dead += u64::from(!lived);
    let findings = sim.finish();
    assert!(findings.is_empty(), "{findings:#?}");
    for (kind, count) in sim.faults_hit() {
        *tally.faults.entry(kind).or_default() += count;
    }
}

#[test]
fn right_batches_or_an_error_under_every_schedule_and_fault() {
    let mut tally = Tally::default();
    for seed in 0..SEEDS {
        tally = must_return(move || {
            let ran = catch_unwind(move || {
                run(seed, &mut tally);
                tally
            });
            ran.unwrap_or_else(|panic| {
                eprintln!("seed {seed} fails");
                resume_unwind(panic)
            })
        });
    }
    let Tally {
        right,
        failed,
        dead,
        faults,
    } = tally;
    println!("{right} epochs right, {failed} failed, {dead} devices died, {faults:?}");
    if cfg!(miri) {
        return;
    }
    assert!(right > SEEDS, "only {right} epochs gave bytes to compare");
    assert!(failed > SEEDS / 10, "only {failed} epochs failed");
    for kind in FaultKind::ALL {
        // Only large memory is registered; there is none here.
        let struck = faults.contains_key(&kind) || kind == FaultKind::RefusedRegistration;
        assert!(struck, "{kind:?} never struck");
    }
}

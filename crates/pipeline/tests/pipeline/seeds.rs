//! Random pipelines under adversarial schedules and with faults: each run gives exactly the serial
//! bytes, or an error where a fault struck, nothing in flight is touched, nothing is left, and the pipeline works again
//! as long as the device lives.

use std::collections::BTreeMap;
use std::panic::{catch_unwind, resume_unwind};

use pinlane::pipeline::{Cause, Pipeline, PipelineConfig, PipelineError, PipelineOrder};
use pinlane::{Device, Error};
use pinlane_sim::{FaultKind, Faults};

use super::jobs::Job;
use super::kinds::{From, To};
use super::rig::{ORDERS, Rig, builder};
use pinlane_testing::SplitMix64;
use pinlane_testing::must_return;

const SEEDS: u64 = 2000;
/// Attempts after which a living device must have let one through.
const ATTEMPTS: usize = 60;

/// What the seeds came to.
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

fn config(random: &mut SplitMix64) -> PipelineConfig {
    let mut config = PipelineConfig::default();
    config.order = ORDERS[random.index(3)];
    config.streams = 1 + random.index(4);
    config.slots = 1 + random.index(5);
    if config.order == PipelineOrder::BreadthFirst {
        config.slots = config.slots.max(config.streams);
    }
    config.chunk_bytes = 1 + random.index(150);
    config.record = random.index(4) == 0;
    config
}

/// Of about ten chunks at most, so that some runs meet no fault.
fn job(random: &mut SplitMix64, chunk_bytes: usize) -> Job {
    let (width_in, width_out) = (1 + random.index(3), 1 + random.index(3));
    let chunk_items = (chunk_bytes / (4 * width_in.max(width_out))).max(1);
    Job {
        from: From::ALL[random.index(From::ALL.len())],
        to: To::ALL[random.index(To::ALL.len())],
        items: random.index(10 * chunk_items),
        width_in,
        width_out,
        seed: random.next_u64(),
    }
}

/// The driver's error, if it says that the device is dead.
fn is_fatal(error: &Error) -> bool {
    matches!(error, Error::Driver(error) if error.is_fatal())
}

/// Whether the bytes came, and were right.
fn attempt(rig: &Rig, pipeline: &Pipeline, job: Job, in_place: bool) -> Result<(), PipelineError> {
    let (_, found, expected) = match in_place {
        true => job.run_in_place(rig, pipeline)?,
        false => job.run::<u32, u16>(rig, pipeline)?,
    };
    assert_eq!(found, expected, "{job:?}, in place: {in_place}");
    Ok(())
}

/// Make what a program needs, as often as it takes. `None` when the device is dead.
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

/// Some jobs on one pipeline. Whether the device lived.
fn live(rig: &Rig, random: &mut SplitMix64, tally: &mut Tally) -> bool {
    let config = config(random);
    let Some(pipeline) = make(|| Pipeline::new(&rig.device, config.clone())) else {
        return false;
    };
    for _ in 0..2 {
        let (job, in_place) = (job(random, config.chunk_bytes), random.index(2) == 0);
        let mut right = false;
        for _ in 0..ATTEMPTS {
            let before = rig.sim.faults_hit();
            match attempt(rig, &pipeline, job, in_place) {
                Ok(()) => {
                    tally.right += 1;
                    right = true;
                    break;
                }
                Err(error) => {
                    tally.failed += 1;
                    if matches!(&error.cause, Cause::Pinlane(error) if is_fatal(error)) {
                        return false;
                    }
                    let what = format!("{job:?}, {config:?}: {error}");
                    assert_ne!(rig.sim.faults_hit(), before, "{what}, with no fault");
                }
            }
        }
        assert!(right, "{job:?}, {config:?}: {ATTEMPTS} attempts failed");
    }
    true
}

fn run(seed: u64, tally: &mut Tally) {
    let mut random = SplitMix64::new(seed);
    let sim = builder()
        .seed(random.next_u64())
        .faults(faults(&mut random))
        .record_timeline(false)
        .idle_progress(false)
        .build();
    let lived = match make(|| Device::open(&sim, 0)) {
        None => false,
        Some(device) => {
            device.keep_device_memory([0, 64 << 10, u64::MAX][random.index(3)]);
            let rig = make(|| Rig::with(sim.clone(), device.clone()));
            let lived = rig.is_some_and(|rig| live(&rig, &mut random, tally));
            // Twice: the first may be the one that meets an injected fault.
            let _ = device.synchronize();
            let _ = device.synchronize();
            pinlane_testing::assert_empty(&device);
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
fn right_bytes_or_an_error_under_every_schedule_and_fault() {
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
    println!("{right} runs right, {failed} failed, {dead} devices died, {faults:?}");
    assert!(right > SEEDS, "only {right} runs gave bytes to compare");
    assert!(failed > SEEDS / 10, "only {failed} runs failed");
    for kind in FaultKind::ALL {
        // Only large memory is registered, of which there is none here.
        let struck = faults.contains_key(&kind) || kind == FaultKind::RefusedRegistration;
        assert!(struck, "{kind:?} never struck");
    }
}

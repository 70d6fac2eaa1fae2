//! Random loads under adversarial schedules and injected faults: each tensor is right, or the load fails
//! where a fault was injected. Nothing in flight is touched, nothing leaks, and later loads work while the
//! device is alive.

use std::collections::BTreeMap;
use std::panic::{catch_unwind, resume_unwind};

use pinlane::load::{Dtype, Io, LoadConfig, LoadError, TensorInfo, Weights};
use pinlane::{Device, Error, Stream};
use pinlane_sim::{FaultKind, Faults, Sim};

use super::rig::{check, config, device_error, file};
use super::support::Scratch;
use pinlane_testing::SplitMix64;
use pinlane_testing::{assert_empty, must_return, profile};

const SEEDS: u64 = if cfg!(miri) { 5 } else { 2000 };
/// Attempts until one must succeed on a live device.
const ATTEMPTS: usize = 60;

/// Outcomes of the seeds.
#[derive(Default)]
struct Tally {
    right: u64,
    failed: u64,
    dead: u64,
    faults: BTreeMap<FaultKind, u64>,
}

/// A third has no faults, a third recoverable ones, the rest any.
fn faults(random: &mut SplitMix64) -> Faults {
    match random.index(3) {
        0 => Faults::none(),
        1 => Faults::all(10)
            .with(FaultKind::LateError, 0)
            .with(FaultKind::LostDevice, 0)
            .with(FaultKind::StuckCompletion, 0),
        _ => Faults::all(4).with(FaultKind::LostDevice, 2),
    }
}

/// Two files; most tensors at odd offsets.
fn model(scratch: &Scratch) -> Weights {
    let one: &[(&str, Dtype, &[u64])] = &[
        ("odd", Dtype::U8, &[3]),
        ("h.0", Dtype::F32, &[60, 30]),
        ("h.1", Dtype::F16, &[7001]),
        ("none", Dtype::F32, &[0]),
        ("ids", Dtype::I64, &[40, 30]),
    ];
    let other: &[(&str, Dtype, &[u64])] = &[
        ("flag", Dtype::Bool, &[1]),
        ("h.2", Dtype::F64, &[50, 50]),
        ("one", Dtype::F32, &[]),
    ];
    let paths = [
        file(scratch, "one.safetensors", one, 1),
        file(scratch, "other.safetensors", other, 2),
    ];
    Weights::open_all(paths).expect("good files")
}

fn random_config(random: &mut SplitMix64) -> LoadConfig {
    let mut config = config([1, 3][random.index(2)]);
    config.io = [Io::Auto, Io::Buffered, Io::Direct][random.index(3)];
    let to = [Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64];
    if random.index(2) == 0 {
        config.convert = Some(to[random.index(4)]);
    }
    config.piece_bytes = Some((4 + random.index(5)) * 4096);
    config
}

/// All tensors, or some of them, some in rows, some of them twice.
fn random_weights(random: &mut SplitMix64, all: &Weights) -> Weights {
    if random.index(2) == 0 {
        return all.clone();
    }
    let tensors = all.catalog().tensors();
    let some: Vec<TensorInfo> = (0..1 + random.index(6))
        .map(|_| {
            let tensor = &tensors[random.index(tensors.len())];
            match tensor.shape().first() {
                Some(&rows) if rows > 1 => {
                    let start = random.next_u64() % rows;
                    tensor.rows(start..rows).expect("rows")
                }
                _ => tensor.clone(),
            }
        })
        .collect();
    all.clone().only(some)
}

/// Whether the error means that the device is dead.
fn is_fatal(error: &Error) -> bool {
    matches!(error, Error::Driver(error) if error.is_fatal())
}

/// Retries until it succeeds. `None` if the device is dead.
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

fn as_error(error: LoadError) -> Error {
    device_error(&error).clone()
}

/// One load. Compares each tensor when it arrives; sometimes stops half-way.
fn attempt(
    device: &Device,
    stream: &Stream,
    weights: &Weights,
    config: &LoadConfig,
    leave_at: Option<usize>,
) -> pinlane::Result<()> {
    let mut tensors = Vec::new();
    for tensor in weights.start(device, config).map_err(as_error)? {
        if leave_at == Some(tensors.len()) {
            return Ok(());
        }
        let tensor = tensor.map_err(as_error)?;
        check(stream, weights, &tensor, config)?;
        tensors.push(tensor);
    }
    assert_eq!(tensors.len(), weights.tensors().len());
    // Later tensors have not touched it.
    match tensors.first() {
        Some(first) => check(stream, weights, first, config),
        None => Ok(()),
    }
}

/// Several loads. Returns whether the device survived.
fn live(
    device: &Device,
    sim: &Sim,
    all: &Weights,
    random: &mut SplitMix64,
    tally: &mut Tally,
) -> bool {
    let Some(stream) = make(|| device.stream()) else {
        return false;
    };
    for _ in 0..2 {
        let weights = random_weights(random, all);
        let config = random_config(random);
        let leave_at = (random.index(4) == 0).then(|| random.index(4));
        let mut right = false;
        for _ in 0..ATTEMPTS {
            let before = sim.faults_hit();
            match attempt(device, &stream, &weights, &config, leave_at) {
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
                    let struck = sim.faults_hit() != before;
                    assert!(struck, "{config:?}: {error}, with no fault");
                }
            }
        }
        assert!(right, "{config:?}: {ATTEMPTS} attempts failed");
    }
    true
}

fn run(seed: u64, all: &Weights, tally: &mut Tally) {
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
            device.keep_device_memory([0, 64 << 10, u64::MAX][random.index(3)]);
            let lived = live(&device, &sim, all, &mut random, tally);
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
fn tensors_are_right_or_the_load_fails_under_any_schedule_and_fault() {
    let scratch = Scratch::new();
    let all = model(&scratch);
    let mut tally = Tally::default();
    for seed in 0..SEEDS {
        let all = all.clone();
        tally = must_return(move || {
            let ran = catch_unwind(move || {
                run(seed, &all, &mut tally);
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
    println!("{right} loads right, {failed} failed, {dead} devices died, {faults:?}");
    if cfg!(miri) {
        return;
    }
    assert!(right > SEEDS, "only {right} loads gave bytes to compare");
    assert!(failed > SEEDS / 10, "only {failed} loads failed");
    for kind in FaultKind::ALL {
        // Rare here: only large buffers are registered.
        let struck = faults.contains_key(&kind) || kind == FaultKind::RefusedRegistration;
        assert!(struck, "{kind:?} never struck");
    }
}

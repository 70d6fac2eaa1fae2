//! Random loads under adversarial schedules and injected faults: each tensor is right, or the load fails
//! where a fault was injected. Nothing in flight is touched, nothing leaks, and later loads work while the
//! device is alive.

use pinlane::load::{DeviceTarget, Dtype, Io, LoadConfig, LoadError, TensorInfo, Weights};
use pinlane::{Device, Error, Stream};
use pinlane_sim::Sim;

use super::rig::{check, config, device_error, expected, file};
use super::support::Scratch;
use pinlane_testing::{SplitMix64, Tally, make, run_seeds, sim_builder};

const SEEDS: u64 = if cfg!(miri) { 5 } else { 2000 };

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

/// One load into buffers given per tensor, which `stream` has just filled.
fn attempt_into(
    device: &Device,
    stream: &Stream,
    weights: &Weights,
    config: &LoadConfig,
    leave_at: Option<usize>,
) -> pinlane::Result<()> {
    let tensors = weights.start_into(stream, config, |tensor| {
        let mut buffer = device.alloc::<u8>(tensor.len_bytes())?;
        stream.fill_bytes(&mut buffer, 0)?;
        Ok(DeviceTarget::buffer(buffer))
    });
    let mut count = 0;
    for tensor in tensors.map_err(as_error)? {
        if leave_at == Some(count) {
            return Ok(());
        }
        let tensor = tensor.map_err(as_error)?;
        let found = stream.copy_to_vec(&tensor.owner)?;
        let (_, bytes) = expected(weights, &tensor.info, config.convert);
        pinlane_testing::assert_same(&found, &bytes, tensor.info.name());
        count += 1;
    }
    assert_eq!(count, weights.tensors().len());
    Ok(())
}

/// Several loads. Returns whether the device survived.
fn live(
    sim: &Sim,
    device: &Device,
    all: &Weights,
    random: &mut SplitMix64,
    tally: &mut Tally,
) -> bool {
    let Some(stream) = make(|| device.stream()) else {
        return false;
    };
    for _ in 0..2 {
        let weights = random_weights(random, all);
        let mut config = random_config(random);
        let leave_at = (random.index(4) == 0).then(|| random.index(4));
        let given = random.index(2) == 0;
        if given && random.index(3) > 0 {
            config.device_bytes = Some(1 + random.next_u64() % 50_000);
        }
        let load = || match given {
            true => attempt_into(device, &stream, &weights, &config, leave_at),
            false => attempt(device, &stream, &weights, &config, leave_at),
        };
        if !tally.attempt(sim, &config, load) {
            return false;
        }
    }
    true
}

#[test]
fn tensors_are_right_or_the_load_fails_under_any_schedule_and_fault() {
    let scratch = Scratch::new();
    let all = model(&scratch);
    run_seeds(
        SEEDS,
        [10, 4, 2],
        sim_builder,
        move |sim, device, random, tally| {
            device.keep_device_memory([0, 64 << 10, u64::MAX][random.index(3)]);
            live(sim, device, &all, random, tally)
        },
    );
}

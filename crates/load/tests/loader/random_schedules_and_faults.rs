//! Random loaders under adversarial schedules and injected faults: every batch is right or an error,
//! nothing in flight is touched, nothing leaks, and the loader works again unless the device is dead.

use pinlane::load::{DeviceTransform, Dtype, Loader, LoaderConfig, LoaderError, Tail};
use pinlane::{Device, Error, Normalize, Stream};
use pinlane_sim::Sim;

use super::support::{Made, check};
use pinlane_testing::{SplitMix64, Tally, make, run_seeds, sim_builder};

const SEEDS: u64 = if cfg!(miri) { 10 } else { 2000 };

fn config(random: &mut SplitMix64) -> LoaderConfig {
    LoaderConfig::default()
        .batch(1 + random.index(6))
        .shuffle(random.index(2) == 0)
        .seed(random.next_u64())
        .tail([Tail::Keep, Tail::Drop, Tail::Pad][random.index(3)])
        .workers(Some(random.index(4)))
        .prefetch(1 + random.index(4))
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
fn live(sim: &Sim, device: &Device, random: &mut SplitMix64, tally: &mut Tally) -> bool {
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
    (0..2).all(|_| {
        let seed = random.next_u64();
        tally.attempt(sim, &config, || attempt(&loader, &stream, seed, finished))
    })
}

#[test]
fn right_batches_or_an_error_under_every_schedule_and_fault() {
    run_seeds(SEEDS, [4, 2, 1], sim_builder, live);
}

//! Random pipelines under adversarial schedules and with faults: each run gives exactly the serial
//! bytes, or an error where a fault struck, nothing in flight is touched, nothing is left, and the pipeline works again
//! as long as the device lives.

use pinlane::Error;
use pinlane::pipeline::{Cause, Pipeline, PipelineConfig, PipelineError, PipelineOrder};

use super::checked_job::Job;
use super::input_and_output_kinds::{From, To};
use super::rig::{ORDERS, Rig, builder};
use pinlane_testing::{SplitMix64, Tally, make, run_seeds};

const SEEDS: u64 = 2000;

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

/// Whether the bytes came, and were right.
fn attempt(rig: &Rig, pipeline: &Pipeline, job: Job, in_place: bool) -> Result<(), PipelineError> {
    let (_, found, expected) = match in_place {
        true => job.run_in_place(rig, pipeline)?,
        false => job.run::<u32, u16>(rig, pipeline)?,
    };
    assert_eq!(found, expected, "{job:?}, in place: {in_place}");
    Ok(())
}

/// Some jobs on one pipeline. Whether the device lived.
fn live(rig: &Rig, random: &mut SplitMix64, tally: &mut Tally) -> bool {
    let config = config(random);
    let Some(pipeline) = make(|| Pipeline::new(&rig.device, config.clone())) else {
        return false;
    };
    for _ in 0..2 {
        let (job, in_place) = (job(random, config.chunk_bytes), random.index(2) == 0);
        let run = || attempt(rig, &pipeline, job, in_place).map_err(as_error);
        if !tally.attempt(&rig.sim, &(job, &config), run) {
            return false;
        }
    }
    true
}

fn as_error(error: PipelineError) -> Error {
    match error.cause {
        Cause::Pinlane(error) => error,
        _ => error.into(),
    }
}

#[test]
fn right_bytes_or_an_error_under_every_schedule_and_fault() {
    run_seeds(SEEDS, [4, 2, 1], builder, |sim, device, random, tally| {
        device.keep_device_memory([0, 64 << 10, u64::MAX][random.index(3)]);
        let rig = make(|| Rig::with(sim.clone(), device.clone()));
        rig.is_some_and(|rig| live(&rig, random, tally))
    });
}

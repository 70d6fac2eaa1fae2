//! A pipeline that plans itself: the same results, every item once, and a plan for the kernel that it has.

use pinlane::model::Profile;
use pinlane::model::pipeline::{KernelTime, PipelineOrder};
use pinlane::pipeline::{Input, Output, PlannedPipeline, RunSummary, StageKind};
use pinlane_sim::Sim;

use super::rig::Rig;

const LEN: usize = 3_000_017;

fn rig() -> (Rig, Profile) {
    let profile = Profile::builtin("h200").unwrap();
    let builder = Sim::builder().profile(profile.clone());
    (
        Rig::on(builder.kernel(super::mixing_kernel::kernel())),
        profile,
    )
}

fn numbers() -> Vec<u32> {
    (0..LEN as u32)
        .map(|number| number.wrapping_mul(0x9e37_79b9))
        .collect()
}

/// Chunks follow each other without a gap.
fn assert_whole(chunks: &[(u64, usize, usize)], summary: &RunSummary) {
    let mut next = (0, 0);
    for &(number, first_item, items) in chunks {
        assert_eq!((number, first_item), next);
        next = (number + 1, first_item + items);
    }
    assert_eq!(next, (summary.chunks, LEN));
    assert_eq!(summary.items, LEN as u64);
}

#[test]
fn results_are_those_of_any_pipeline() {
    let (rig, profile) = rig();
    let numbers = numbers();
    let expected: Vec<u32> = numbers
        .iter()
        .map(|number| number.wrapping_add(7))
        .collect();
    let pinned = rig.device.pinned_from(&numbers).unwrap();
    let mut pinned_out = rig.device.pinned::<u32>(LEN).unwrap();
    let mut ordinary_out = vec![0; LEN];
    let pipeline = PlannedPipeline::new(&rig.device, profile);
    for run in 0..3 {
        let mut chunks = Vec::new();
        let kernel = |stage: &pinlane::pipeline::Stage<'_>,
                      data: pinlane::DeviceSliceMut<'_, u32>| {
            chunks.push((stage.chunk(), stage.first_item(), stage.items()));
            rig.kernels.add(stage.stream(), 7, data)
        };
        let summary = match run {
            0 => pipeline.run_in_place(&pinned, &mut pinned_out, kernel),
            1 => pipeline.run_in_place(&pinned, &mut ordinary_out[..], kernel),
            _ => pipeline.run_in_place(&numbers[..], &mut pinned_out, kernel),
        };
        let summary = summary.unwrap();
        assert_whole(&chunks, &summary);
        assert!(pipeline.kernel_time().is_some());
        match run {
            1 => assert_eq!(ordinary_out, expected),
            _ => assert_eq!(pinned_out[..], expected),
        }
        pinned_out.fill(0);
    }
    drop((pipeline, pinned, pinned_out));
    rig.assert_clean();
}

#[test]
fn several_inputs_to_another_type() {
    let (rig, profile) = rig();
    let x: Vec<f32> = (0..LEN).map(|i| i as f32).collect();
    let y = vec![1.0f32; LEN];
    let mut sums = vec![0.0f32; LEN];
    let pipeline = PlannedPipeline::new(&rig.device, profile);
    let summary = pipeline.run(
        (&x[..], &y[..]),
        &mut sums[..],
        |stage, (x, y), mut sums| {
            stage.stream().copy_on_device(y, sums.reborrow())?;
            rig.kernels.saxpy(stage.stream(), 2.0, x, sums)
        },
    );
    assert_eq!(summary.unwrap().items, LEN as u64);
    assert!(
        sums.iter()
            .zip(&x)
            .all(|(sum, x)| *sum == 2.0f32.mul_add(*x, 1.0))
    );
    drop(pipeline);
    rig.assert_clean();
}

/// A kernel that does not fill the device: the first chunks tell, and the plan has several streams or one chunk.
#[test]
fn the_first_chunks_measure_the_kernel() {
    let (rig, profile) = rig();
    let input = rig.device.pinned_from(&numbers()).unwrap();
    let mut output = rig.device.pinned::<u32>(LEN).unwrap();
    let pipeline = PlannedPipeline::new(&rig.device, profile.clone());
    let mut run = |pipeline: &PlannedPipeline| {
        let began_ns = rig.sim.now_ns();
        let ran = pipeline.run_in_place(&input, &mut output, |stage, data| {
            rig.kernels.round_trips(stage.stream(), 50, data)
        });
        ran.unwrap();
        rig.sim.now_ns() - began_ns
    };
    run(&pipeline);
    let kernel = pipeline.kernel_time().unwrap();
    // 50 round trips of 600 ns for each of 16 elements.
    let small_ns = kernel.ns(256 << 10).unwrap();
    assert!(small_ns.abs_diff(480_000) < 10_000, "{kernel:?}");
    let config = pipeline.config().unwrap();
    let chunks = (LEN * 4).div_ceil(config.chunk_bytes);
    assert!(
        chunks == 1 || config.order != PipelineOrder::StageStreams,
        "{config:?}"
    );
    // The second run is planned as a whole, the third has its buffers.
    run(&pipeline);
    let later_ns = run(&pipeline);
    let given = KernelTime {
        fixed_ns: 0,
        least_ns: 480_000,
        ns_per_gib: 0,
        idle_percent: 0,
    };
    let told = PlannedPipeline::new(&rig.device, profile).with_kernel(given);
    run(&told);
    assert_eq!(told.kernel_time(), Some(given), "nothing is measured");
    let told_ns = run(&told);
    assert!(
        later_ns.abs_diff(told_ns) * 50 < told_ns,
        "{later_ns} for {told_ns}"
    );
    drop((pipeline, told, input, output));
    rig.assert_clean();
}

#[test]
fn unknown_lengths_and_short_inputs_run_without_a_plan() {
    let (rig, profile) = rig();
    let pipeline = PlannedPipeline::new(&rig.device, profile);
    let mut sum = 0;
    let batches = Input::batches((0..5u32).map(|number| vec![number; 100]));
    let take = Output::each(|done: &[u32]| {
        sum += done.iter().sum::<u32>();
        Ok(())
    });
    let ran = pipeline.run_in_place(batches, take, |stage, data| {
        rig.kernels.add(stage.stream(), 1, data)
    });
    assert_eq!(ran.unwrap().items, 500);
    assert_eq!(sum, 1500);
    for len in [0, 1, 1000] {
        let mut out = vec![0; len];
        let input = vec![1; len];
        let ran = pipeline.run_in_place(&input[..], &mut out[..], |stage, data| {
            rig.kernels.add(stage.stream(), 1, data)
        });
        assert_eq!(ran.unwrap().items, len as u64);
        assert_eq!(out, vec![2; len]);
    }
    assert_eq!(pipeline.kernel_time(), None);
    drop(pipeline);
    rig.assert_clean();
}

#[test]
fn an_error_names_the_chunk_of_the_whole_run() {
    let (rig, profile) = rig();
    let input = rig.device.pinned_from(&numbers()).unwrap();
    for failing in [0, 1, 4] {
        let pipeline = PlannedPipeline::new(&rig.device, profile.clone());
        let mut output = rig.device.pinned::<u32>(LEN).unwrap();
        let ran = pipeline.run_in_place(&input, &mut output, |stage, data| {
            match stage.chunk() == failing {
                true => Err(pinlane::Error::Calibration("on purpose".to_owned())),
                false => rig.kernels.add(stage.stream(), 1, data),
            }
        });
        let error = ran.unwrap_err();
        assert_eq!(error.place, Some((failing, StageKind::Kernel)), "{error}");
    }
    drop(input);
    rig.assert_clean();
}

/// The best chunk by time would be all of the input, for which there is no room.
#[test]
fn plans_fit_the_memory_that_is_left() {
    let mut profile = Profile::builtin("h200").unwrap();
    profile.device.memory_bytes = 32 << 20;
    let builder = Sim::builder().profile(profile.clone());
    let rig = Rig::on(builder.kernel(super::mixing_kernel::kernel()));
    let numbers = numbers();
    let expected: Vec<u32> = numbers
        .iter()
        .map(|number| number.wrapping_add(7))
        .collect();
    let stream = rig.device.stream().unwrap();
    let mut input = rig.device.alloc::<u32>(LEN).unwrap();
    stream.copy_to_device(&numbers, &mut input).unwrap();
    let mut output = rig.device.alloc::<u32>(LEN).unwrap();
    let kernel = |stage: &pinlane::pipeline::Stage<'_>, data: pinlane::DeviceSliceMut<'_, u32>| {
        rig.kernels.add(stage.stream(), 7, data)
    };
    let pipeline = PlannedPipeline::new(&rig.device, profile.clone());
    pipeline.run_in_place(&input, &mut output, kernel).unwrap();
    assert_eq!(stream.copy_to_vec(&output).unwrap(), expected);
    // And with chunks that are copied.
    let pinned = rig.device.pinned_from(&numbers).unwrap();
    let mut result = rig.device.pinned::<u32>(LEN).unwrap();
    let pipeline = PlannedPipeline::new(&rig.device, profile);
    pipeline.run_in_place(&pinned, &mut result, kernel).unwrap();
    assert_eq!(result[..], expected);
}

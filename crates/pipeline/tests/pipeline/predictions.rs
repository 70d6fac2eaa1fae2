//! What the model predicts is what the simulator's clock shows of a real pipeline, calls of the host included.

use pinlane::model::Profile;
use pinlane::model::pipeline::{Job, KernelTime, Memory, PipelineOrder, Shape};
use pinlane::model::planner::predict_ns;
use pinlane::pipeline::PipelineConfig;
use pinlane_sim::Sim;

use super::rig::{ORDERS, Rig};

const MIB: u64 = 1 << 20;

/// Nanoseconds that a pipeline of this shape takes on the simulator, once its buffers exist.
fn simulated_ns(profile: &Profile, bytes: u64, rounds: u32, shape: &Shape) -> u64 {
    let rig = Rig::on(
        Sim::builder()
            .profile(profile.clone())
            .checks(false)
            .kernel(super::mixing_kernel::kernel()),
    );
    let len = bytes as usize / 4;
    let input = rig.device.pinned::<u32>(len).unwrap();
    let mut output = rig.device.pinned::<u32>(len).unwrap();
    let pipeline = rig.pipeline(PipelineConfig::planned(shape, 4).unwrap());
    let mut took_ns = 0;
    for _ in 0..2 {
        let began_ns = rig.sim.now_ns();
        let kernels = &rig.kernels;
        pipeline
            .run_in_place(&input, &mut output, |stage, data| {
                kernels.churn(stage.stream(), rounds, data)
            })
            .unwrap();
        took_ns = rig.sim.now_ns() - began_ns;
    }
    drop((pipeline, input, output));
    rig.assert_clean();
    took_ns
}

/// The same job for the model.
fn job(profile: &Profile, bytes: u64, rounds: u32) -> Job {
    let whole = profile.kernel_ns(bytes * 2, u64::from(rounds) * (bytes / 4) / 16_000);
    let whole_ns = whole - profile.kernel.launch_ns;
    Job {
        bytes_in: bytes,
        bytes_out: bytes,
        kernel: KernelTime {
            ns_per_gib: ((u128::from(whole_ns) << 30) / u128::from(bytes)) as u64,
            ..KernelTime::default()
        },
        input: Memory::Pinned,
        output: Memory::Pinned,
        host_ns_per_chunk: 0,
    }
}

#[test]
fn predictions_match_the_simulator() {
    for name in Profile::builtin_names() {
        let profile = Profile::builtin(name).unwrap();
        for (bytes, rounds) in [(MIB, 1), (4 * MIB, 3_000), (24 * MIB, 50)] {
            let job = job(&profile, bytes, rounds);
            for order in ORDERS {
                for (streams, slots) in [(1, 1), (2, 2), (4, 8)] {
                    let streams = match order {
                        PipelineOrder::StageStreams => 3,
                        _ => streams,
                    };
                    for chunks in [1, 4, 16] {
                        let shape = Shape {
                            chunk_bytes: bytes / chunks,
                            streams,
                            order,
                            ring_slots: slots.max(streams),
                        };
                        let predicted_ns = predict_ns(&job, &profile, &shape).unwrap();
                        let took_ns = simulated_ns(&profile, bytes, rounds, &shape);
                        // Buffers of the run before may add a wait for each slot.
                        let waits_ns = u64::from(shape.ring_slots) * profile.calls.event_ns;
                        let off_ns = predicted_ns.abs_diff(took_ns);
                        assert!(
                            off_ns <= waits_ns + took_ns / 1000,
                            "{name}, {bytes} bytes, {shape:?}: {predicted_ns} for {took_ns}"
                        );
                    }
                }
            }
        }
    }
}

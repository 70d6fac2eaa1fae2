//! Kernels on chunks that do not fill the device: times from measurements, and plans for them.

use pinlane_model::pipeline::{Job, KernelTime, Memory, PipelineOrder, Shape};
use pinlane_model::planner::{Limits, best, predict_ns};
use pinlane_model::schedule::schedule;
use pinlane_model::{Profile, SplitMix64};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Sizes from 128 KiB to this one.
fn sizes(most: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(most), |size| Some(size / 8 * 5)).take_while(|size| *size >= MIB / 8)
}

fn pinned(bytes: u64, kernel: KernelTime) -> Job {
    Job {
        bytes_in: bytes,
        bytes_out: bytes,
        kernel,
        input: Memory::Pinned,
        output: Memory::Pinned,
        host_ns_per_chunk: 0,
    }
}

#[track_caller]
fn assert_near(found: u64, expected: u64, percent: u64) {
    let off = found.abs_diff(expected);
    assert!(off * 100 <= expected * percent, "{found} for {expected}");
}

#[test]
fn a_fit_finds_the_times_that_were_measured() {
    let kernels = [
        (0, 0, 4_000_000),
        (7_000, 0, 100_000_000),
        (0, 300_000, 30_000_000),
        (2_000, 150_000, 10_000_000),
        (50_000, 0, 0),
    ];
    for (fixed_ns, least_ns, ns_per_gib) in kernels {
        let kernel = KernelTime {
            fixed_ns,
            least_ns,
            ns_per_gib,
            idle_percent: 0,
        };
        let times: Vec<_> = sizes(GIB)
            .map(|size| (size, kernel.ns(size).unwrap()))
            .collect();
        let found = KernelTime::fit(&times, (1, &[]));
        for size in sizes(GIB) {
            let expected_ns = kernel.ns(size).unwrap();
            assert_near(found.ns(size).unwrap(), expected_ns, 1);
        }
    }
}

#[test]
fn among_equal_fits_the_device_is_busy_for_longer() {
    // Only the largest size fills the device.
    let times: Vec<_> = sizes(24 * MIB)
        .map(|size| (size, (size / 2).max(9 * MIB)))
        .collect();
    let kernel = KernelTime::fit(&times, (1, &[]));
    assert_eq!(kernel.fixed_ns, 0);
    assert_eq!(kernel.least_ns, 9 * MIB);
    assert_near(kernel.ns_per_gib, GIB / 2, 1);
}

/// Times alone of a kernel with a floor may look like a fixed part; times together tell.
#[test]
fn times_together_tell_a_floor_from_a_fixed_part() {
    let kernel = KernelTime {
        fixed_ns: 0,
        least_ns: 1_162_000,
        ns_per_gib: 72_800_000,
        idle_percent: 0,
    };
    let ns = |size| kernel.ns(size).unwrap();
    let wiggle = |size: u64| size >> 20;
    let alone: Vec<_> = sizes(25 * MIB)
        .map(|size| (size, ns(size) + wiggle(size)))
        .collect();
    let each = |size| (ns(size) / 4).max(size * 72_800_000 / GIB);
    let together: Vec<_> = sizes(25 * MIB / 4).map(|size| (size, each(size))).collect();
    let found = KernelTime::fit(&alone, (4, &together));
    assert!(found.fixed_ns < 20_000, "{found:?}");
    assert_near(found.ns_per_gib, 72_800_000, 2);
}

#[test]
fn a_kernel_that_takes_as_long_for_every_size_has_no_rate() {
    let times: Vec<_> = sizes(2 * MIB)
        .map(|size| (size, 480_000 + size / MIB))
        .collect();
    let kernel = KernelTime::fit(&times, (1, &[]));
    assert_near(kernel.ns(64 * MIB).unwrap(), 480_000, 1);
}

#[test]
fn a_fit_is_robust_against_noise_and_a_few_wrong_times() {
    let kernel = KernelTime {
        fixed_ns: 3_000,
        least_ns: 200_000,
        ns_per_gib: 25_000_000,
        idle_percent: 0,
    };
    for seed in 0..50 {
        let mut random = SplitMix64::new(seed);
        let mut times: Vec<_> = sizes(GIB)
            .map(|size| {
                let ns = kernel.ns(size).unwrap();
                (size, ns * (985 + random.below(30)) / 1000)
            })
            .collect();
        // Something else ran on the device.
        for _ in 0..2 {
            let index = random.index(times.len());
            times[index].1 *= 3;
        }
        let found = KernelTime::fit(&times, (1, &[]));
        for size in sizes(GIB) {
            assert_near(found.ns(size).unwrap(), kernel.ns(size).unwrap(), 6);
        }
    }
}

#[test]
fn a_kernel_that_leaves_the_device_idle_is_told_by_times_together() {
    let alone: Vec<_> = sizes(64 * MIB).map(|size| (size, size / 10)).collect();
    let together: Vec<_> = sizes(16 * MIB).map(|size| (size, size / 40)).collect();
    assert_eq!(KernelTime::fit(&alone, (4, &together)).idle_percent, 75);
    assert_eq!(KernelTime::fit(&alone, (4, &alone)).idle_percent, 0);
    assert_eq!(KernelTime::fit(&alone, (4, &[])).idle_percent, 0);
    assert_eq!(KernelTime::fit(&[], (1, &[])), KernelTime::default());
    // Only more streams make such a kernel faster.
    let kernel = KernelTime::fit(&alone, (4, &together));
    let profile = Profile::builtin("h200").unwrap();
    let job = pinned(64 * MIB, kernel);
    let plan = best(&job, &profile, &Limits::default()).unwrap();
    let whole_ns = kernel.ns(job.bytes_in).unwrap();
    assert!(plan.predicted_ns * 2 < whole_ns, "{plan:?}");
    assert_ne!(plan.shape.order, PipelineOrder::StageStreams);
}

/// Measured on an H200: 8 MiB with a kernel of 15 ms took 17.2 ms on stage streams in 12 chunks, 15.05 on four
/// streams in 8 chunks, 15.4 synchronously. The kernel has 8192 blocks, and 132 run at a time.
#[test]
fn kernels_with_few_blocks_are_predicted_as_measured() {
    let profile = Profile::builtin("h200").unwrap();
    let block_ns = 15_000_000 / 8192_u64.div_ceil(132);
    let kernel_ns = |bytes: u64| (bytes / 1024).div_ceil(132) * block_ns;
    let times: Vec<_> = sizes(8 * MIB).map(|size| (size, kernel_ns(size))).collect();
    let job = pinned(8 * MIB, KernelTime::fit(&times, (1, &[])));
    let shape = |chunks: u64, streams, order, ring_slots| Shape {
        chunk_bytes: (8 * MIB).div_ceil(chunks),
        streams,
        order,
        ring_slots,
    };
    let predicted = |shape| predict_ns(&job, &profile, &shape).unwrap();
    let twelve_ns = predicted(shape(12, 3, PipelineOrder::StageStreams, 4));
    let eight_ns = predicted(shape(8, 4, PipelineOrder::DepthFirst, 8));
    let serial_ns = schedule(&profile, &job.serial(&profile).unwrap())
        .unwrap()
        .end_ns;
    assert_near(twelve_ns, 17_200_000, 6);
    assert_near(eight_ns, 15_050_000, 2);
    assert_near(serial_ns, 15_400_000, 2);
    let plan = best(&job, &profile, &Limits::default()).unwrap();
    assert!(plan.predicted_ns <= eight_ns, "{plan:?}");
}

/// The planner's own model knows no simple way that is much better, whatever the kernel.
#[test]
fn no_simple_way_is_predicted_to_beat_the_plan() {
    // Where calls take no time, nothing is worth a plan.
    for name in Profile::builtin_names().filter(|name| *name != "null") {
        let profile = Profile::builtin(name).unwrap();
        let mut random = SplitMix64::new(9);
        for _ in 0..60 {
            let size = |random: &mut SplitMix64, bits| {
                let limit = 2 << random.below(bits);
                random.below(limit)
            };
            let kernel = KernelTime {
                fixed_ns: size(&mut random, 20),
                least_ns: size(&mut random, 23),
                ns_per_gib: size(&mut random, 31),
                idle_percent: (random.below(2) * random.below(90)) as u32,
            };
            let job = pinned(MIB + size(&mut random, 28), kernel);
            let plan = best(&job, &profile, &Limits::default()).unwrap();
            let serial = job.serial(&profile).unwrap();
            let mut others = vec![(schedule(&profile, &serial).unwrap().end_ns, None)];
            for order in PipelineOrder::ALL {
                for streams in [2, 3, 4, 8] {
                    for per_stream in [1, 2, 4] {
                        let shape = Shape {
                            chunk_bytes: job.bytes_in.div_ceil(u64::from(streams * per_stream)),
                            streams: if order == PipelineOrder::StageStreams {
                                3
                            } else {
                                streams
                            },
                            order,
                            ring_slots: streams * 2,
                        };
                        let ns = predict_ns(&job, &profile, &shape).unwrap();
                        others.push((ns, Some(shape)));
                    }
                }
            }
            let (least_ns, shape) = *others.iter().min_by_key(|other| other.0).unwrap();
            assert!(
                plan.predicted_ns * 50 <= least_ns * 51,
                "{name}, {job:?}: {:?} takes {}, {shape:?} {least_ns}",
                plan.shape,
                plan.predicted_ns
            );
        }
    }
}

/// Lines that are too steep, and more points than anybody measures.
#[test]
fn odd_measurements_are_fitted_all_the_same() {
    let steep = [(1 << 40, 0), ((1 << 40) + 1, 1 << 62)];
    let _ = KernelTime::fit(&steep, (1, &[]));
    let _ = KernelTime::fit(&[(u64::MAX, u64::MAX), (1, u64::MAX)], (1, &[]));
    let many: Vec<_> = (1..5_000).map(|mib| (mib << 20, mib * 10_000)).collect();
    let kernel = KernelTime::fit(&many, (1, &[]));
    assert_eq!(kernel.ns(1 << 30), Ok(10_240_000));
}

/// Between two sizes that take as long, a rate would be noise, and much of it for larger chunks.
#[test]
fn times_that_hardly_differ_give_no_rate() {
    let kernel = KernelTime::fit(&[(128 << 10, 150_000), (384 << 10, 150_100)], (1, &[]));
    assert_eq!(kernel.ns_per_gib, 0);
    assert!((150_000..=150_100).contains(&kernel.ns(1 << 30).unwrap()));
}

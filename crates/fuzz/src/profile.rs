//! Profiles of machines.

use pinlane_model::pipeline::{Job, KernelTime, Memory, PipelineOrder, Shape};
use pinlane_model::planner::predict_ns;
use pinlane_model::{Direction, HostKind, Profile};

/// Sizes of copies, ascending.
const SIZES: [u64; 7] = [0, 1, 4096, 1 << 20, 3 << 20, 1 << 40, u64::MAX];

/// A profile as TOML. A valid one survives being written, and its costs and plans can be computed.
pub fn profile(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let profile = match Profile::from_toml(text) {
        Ok(profile) => profile,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let again = Profile::from_toml(&profile.to_toml());
    assert_eq!(again.as_ref(), Ok(&profile));
    check_costs(&profile);
    for memory in [Memory::Pinned, Memory::Pageable, Memory::Express] {
        for order in PipelineOrder::ALL {
            predict(&profile, memory, order);
        }
    }
}

/// More bytes never cost less.
fn check_costs(profile: &Profile) {
    let rising = |ns: &dyn Fn(u64) -> u64| assert!(SIZES.map(ns).is_sorted());
    for direction in [Direction::HostToDevice, Direction::DeviceToHost] {
        for kind in [HostKind::Pageable, HostKind::Pinned] {
            rising(&|bytes| profile.copy_ns(direction, kind, bytes));
        }
        if let Some(express) = &profile.express {
            rising(&|bytes| express.ns(direction, bytes));
        }
    }
    if let Some(express) = &profile.express {
        for bytes in SIZES {
            assert!((100..=1000).contains(&express.both_percent(bytes)));
        }
    }
    rising(&|bytes| profile.device_copy_ns(bytes));
    rising(&|bytes| profile.kernel_ns(bytes, bytes));
    let memory = &profile.host_memory;
    for cost in [
        memory.alloc,
        memory.free,
        memory.register,
        memory.unregister,
    ] {
        rising(&|bytes| cost.ns(bytes));
    }
}

/// Predicts a job of a few chunks. An error is fine: times may not fit, or there is no express lane.
fn predict(profile: &Profile, memory: Memory, order: PipelineOrder) {
    let job = Job {
        bytes_in: 10_000,
        bytes_out: 5_000,
        kernel: KernelTime {
            fixed_ns: 1_000,
            ns_per_gib: 40_000_000,
            ..KernelTime::default()
        },
        input: memory,
        output: memory,
        host_ns_per_chunk: 10,
    };
    let shape = Shape {
        chunk_bytes: 3_000,
        streams: PipelineOrder::STAGES,
        order,
        ring_slots: PipelineOrder::STAGES,
    };
    if let Err(error) = predict_ns(&job, profile, &shape) {
        assert!(!error.to_string().is_empty());
    }
}

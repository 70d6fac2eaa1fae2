//! Small pinned budgets.

use std::fs::File;

use pinlane::load::{Dtype, Io, LoadConfig, Weights};
use pinlane::{Budget, Device, Error};

use super::rig::{PIECE_BYTES, Rig, config, device_error, model};
use super::support::{Scratch, safetensors};
use pinlane_testing::{must_return, sim};

/// A device whose budget holds this many slots.
fn with_slots(slots: usize) -> Rig {
    let sim = sim();
    let budget = Budget::with_limit((slots * PIECE_BYTES) as u64);
    let device = Device::with_budget(sim.driver(), &budget);
    Rig::with(sim, device)
}

#[test]
fn a_load_works_with_fewer_slots() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    for slots in [1, 2, 3, 10] {
        for threads in [1, 3] {
            let weights = weights.clone();
            must_return(move || {
                // Any thread may be first.
                for _ in 0..20 {
                    let rig = with_slots(slots);
                    let tensors = weights.load(&rig.device, &config(threads));
                    let tensors = tensors.unwrap_or_else(|error| panic!("{slots} slots: {error}"));
                    let pinned = rig.device.stats().pinned_bytes as usize;
                    assert!((1..=slots * PIECE_BYTES).contains(&pinned));
                    drop(tensors);
                    rig.assert_clean();
                }
            });
        }
    }
}

#[test]
fn a_budget_without_room_for_a_slot_is_an_error() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    for threads in [1, 4] {
        let weights = weights.clone();
        must_return(move || {
            let rig = with_slots(0);
            for _ in 0..2 {
                let error = weights
                    .load(&rig.device, &config(threads))
                    .expect_err("no memory");
                let error = device_error(&error);
                assert!(matches!(error, Error::OverBudget { .. }), "{error}");
            }
            rig.assert_clean();
        });
    }
}

/// Idle slots of another size are freed.
#[test]
fn idle_slots_are_freed_for_a_load_of_another_size() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let rig = with_slots(6);
    for pages in [4, 24, 5, 20, 4] {
        let mut config = config(2).convert(Dtype::F16);
        config.piece_bytes = Some(pages * 4096);
        let tensors = weights.load(&rig.device, &config);
        let tensors = tensors.unwrap_or_else(|error| panic!("{pages} pages: {error}"));
        assert_eq!(tensors["deep"].dtype(), Dtype::F16);
    }
    rig.assert_clean();
}

/// By default a load takes no more than the budget has left.
#[test]
fn default_sizes_in_a_small_budget() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    for slots in [2, 3, 7] {
        for convert in [None, Some(Dtype::F32), Some(Dtype::F64)] {
            let rig = with_slots(slots);
            let mut config = LoadConfig::default().threads(3);
            config.convert = convert;
            for _ in 0..2 {
                let tensors = weights.load(&rig.device, &config);
                tensors.unwrap_or_else(|error| panic!("{slots} slots, {convert:?}: {error}"));
            }
            rig.assert_clean();
        }
    }
}

#[test]
fn pinned_bytes_is_the_limit() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    for pinned_bytes in [32 << 10, 33_000, 50_000, 100_000] {
        let rig = Rig::new();
        let config = LoadConfig::default().pinned_bytes(pinned_bytes);
        for threads in [1, 3] {
            rig.load(&weights, &config.clone().threads(threads));
            let stats = rig.device.stats();
            let taken = (stats.pinned_bytes - stats.express_bytes) as usize;
            assert!((1..=pinned_bytes).contains(&taken), "{taken}");
        }
        rig.assert_clean();
    }
}

/// Idle slots are freed for other allocations too.
#[test]
fn idle_slots_are_freed_for_other_allocations() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let rig = with_slots(4);
    drop(weights.load(&rig.device, &config(2)).expect("no error"));
    assert!(rig.device.stats().pinned_bytes > 0);
    let buffer = rig.device.pinned::<u8>(4 * PIECE_BYTES);
    drop(buffer.expect("all of the budget"));
    rig.assert_clean();
}

/// As documented: 128 MiB by default.
#[test]
fn large_pieces_stay_within_the_documented_limit() {
    let scratch = Scratch::new();
    let bytes: u64 = 320 << 20;
    let header =
        format!(r#"{{"w":{{"dtype":"U8","shape":[{bytes}],"data_offsets":[0,{bytes}]}}}}"#);
    let path = scratch.file("large.safetensors", safetensors(&header, &[]));
    let file = File::options().write(true).open(&path).expect("our own");
    file.set_len(8 + header.len() as u64 + bytes)
        .expect("a hole");
    let weights = Weights::open(path).expect("a good file");
    let sim = sim();
    let budget = Budget::with_limit(1 << 30);
    let rig = Rig::with(sim.clone(), Device::with_budget(sim.driver(), &budget));
    let mut config = LoadConfig::default().threads(2).io(Io::Buffered);
    config.piece_bytes = Some(32 << 20);
    drop(weights.load(&rig.device, &config).expect("no error"));
    let stats = rig.device.stats();
    let taken = stats.pinned_bytes - stats.express_bytes;
    assert!(taken <= 128 << 20, "{} MiB", taken >> 20);
    rig.assert_clean();
}

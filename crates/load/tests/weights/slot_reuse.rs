//! Pinned slots are kept for the next load, and freed on request.

use pinlane::load::{Dtype, LoadConfig, Weights};
use pinlane_driver::Call;

use super::rig::{PIECE_BYTES, Rig, config, file, model};
use super::support::Scratch;
use pinlane_testing::Trap;
use pinlane_testing::sim;

/// Maximum number of slots.
const SLOTS: usize = 8;

#[test]
fn the_next_load_reuses_slots() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let sim = sim();
    let (device, trap) = Trap::under(&sim);
    let rig = Rig::with(sim, device);
    let pinned = |config: &LoadConfig| {
        trap.watch();
        drop(weights.load(&rig.device, config).expect("no fault"));
        trap.calls()
            .iter()
            .filter(|&&call| call == Call::HostAlloc)
            .count()
    };
    let first = pinned(&config(1));
    assert!((1..=SLOTS).contains(&first));
    assert_eq!(
        rig.device.stats().pinned_bytes,
        (first * PIECE_BYTES) as u64
    );
    for _ in 0..5 {
        // Never more than one load may have, however many loads there are.
        pinned(&config(1));
        assert!(rig.device.stats().pinned_bytes <= (SLOTS * PIECE_BYTES) as u64);
    }
    let kept = rig.device.stats().pinned_bytes as usize;
    assert_eq!(rig.device.trim(), kept);
    assert_eq!(rig.device.stats().pinned_bytes, 0);
    assert_eq!(rig.device.trim(), 0);
    assert!(pinned(&config(1)) > 0, "it has to be pinned again");
    rig.assert_clean();
}

/// A small load uses few threads and little memory.
#[test]
fn small_loads_take_little_memory() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let path = file(&scratch, "w.safetensors", &[("w", Dtype::F32, &[100])], 1);
    let weights = Weights::open(path).expect("a good file");
    let tensors = rig.load(&weights, &config(8));
    assert_eq!(tensors.stats().threads, 1);
    let stats = rig.device.stats();
    assert_eq!(stats.pinned_bytes - stats.express_bytes, PIECE_BYTES as u64);
    drop(tensors);
    rig.assert_clean();
}

/// Idle slots are freed with the device, even without a trim.
#[test]
fn idle_slots_are_freed_with_the_device() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let rig = Rig::new();
    drop(weights.load(&rig.device, &config(3)).expect("no fault"));
    assert!(rig.device.stats().pinned_bytes > 0);
    let Rig {
        sim,
        device,
        stream,
    } = rig;
    drop((stream, device));
    pinlane_testing::assert_clean(&sim);
}

//! Page-locked memory is kept for the next load, and given back when it is asked for.

use pinlane::load::{Dtype, LoadConfig, Weights};
use pinlane_driver::Call;

use super::rig::{PIECE_BYTES, Rig, config, file, model};
use super::support::Scratch;
use pinlane_testing::Trap;
use pinlane_testing::sim;

/// Slots that a load has at most.
const SLOTS: usize = 8;

#[test]
fn the_next_load_has_them() {
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
        // Never more than a load may have, however often it is done.
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

/// No more threads, and no more memory, than there is to read.
#[test]
fn little_to_read_takes_little_memory() {
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

/// Nothing is left with the driver, though nobody asked for it back.
#[test]
fn they_go_with_the_device() {
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

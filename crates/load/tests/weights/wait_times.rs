//! Wait times are attributed correctly, and tensors are returned as soon as they arrive.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use pinlane::Device;
use pinlane::load::{Dtype, LoadLimit, Weights};
use pinlane_driver::{Call, Hook, Intercepted, Result};

use super::rig::{Rig, config, file};
use super::support::Scratch;
use pinlane_testing::sim;

/// Pins memory slowly.
struct SlowToPin;

// SAFETY: it never fails.
unsafe impl Hook for SlowToPin {
    fn before(&self, call: Call) -> Result<()> {
        if call == Call::HostAlloc {
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}

/// One piece, one slot: no thread waits for a copy while there is something to read.
#[test]
fn pinning_time_does_not_count_as_waiting_for_the_link() {
    let scratch = Scratch::new();
    let path = file(&scratch, "w.safetensors", &[("w", Dtype::U8, &[16_000])], 1);
    let weights = Weights::open(path).expect("a good file");
    let sim = sim();
    let driver = Intercepted::new(sim.driver(), SlowToPin);
    let rig = Rig::with(sim, Device::from_driver(Arc::new(driver)));
    let tensors = weights.load(&rig.device, &config(3)).expect("no fault");
    let stats = *tensors.stats();
    assert_ne!(stats.limit(), LoadLimit::Link, "{stats:?}");
    drop(tensors);
    rig.assert_clean();
}

/// Blocks a copy until it is released.
struct HoldsUp {
    at: u64,
    copies: AtomicU64,
    gate: Arc<(Mutex<bool>, Condvar)>,
}

// SAFETY: it never fails.
unsafe impl Hook for HoldsUp {
    fn before(&self, call: Call) -> Result<()> {
        if call == Call::CopyAsync && self.copies.fetch_add(1, Ordering::SeqCst) == self.at {
            let (open, changed) = &*self.gate;
            let open = open.lock().expect("whole");
            drop(changed.wait_while(open, |open| !*open).expect("whole"));
        }
        Ok(())
    }
}

/// Six copies are done, and their slots are reused before new ones are allocated.
#[test]
fn tensors_arrive_before_the_slots_run_out() {
    let scratch = Scratch::new();
    let names: Vec<String> = (0..12).map(|number| format!("h.{number:02}")).collect();
    let tensors: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), Dtype::U8, &[16_384_u64][..]))
        .collect();
    let path = file(&scratch, "many.safetensors", &tensors, 3);
    let weights = Weights::open(path).expect("a good file");
    let sim = sim();
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let hook = HoldsUp {
        at: 6,
        copies: AtomicU64::new(0),
        gate: Arc::clone(&gate),
    };
    let driver = Intercepted::new(sim.driver(), hook);
    let rig = Rig::with(sim, Device::from_driver(Arc::new(driver)));
    let mut landing = weights.start(&rig.device, &config(1)).expect("it starts");
    let first = landing.next_within(Duration::from_secs(5));
    *gate.0.lock().expect("whole") = true;
    gate.1.notify_all();
    assert!(first.is_ready(), "the first copies were done long ago");
    drop((first, landing));
    rig.assert_clean();
}

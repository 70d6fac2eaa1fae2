//! Device memory of dropped tensors, kept for the next load.

use pinlane::load::Weights;
use pinlane_driver::Call;

use super::rig::{Rig, config, model};
use super::support::Scratch;
use pinlane_testing::Trap;
use pinlane_testing::sim;

#[test]
fn the_next_load_allocates_no_device_memory() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let sim = sim();
    let (device, trap) = Trap::under(&sim);
    device.keep_device_memory(1 << 30);
    let rig = Rig::with(sim, device);
    let first = weights.load(&rig.device, &config(2)).expect("no fault");
    let bytes = rig.device.stats().device_bytes;
    let place = first["h.0.w"].bytes().device_ptr();
    // Some tensors of a load stay alive: they share its allocations.
    let left = first["tail"].clone();
    drop(first);
    assert_eq!(rig.device.stats().kept_bytes, 0);
    drop(left);
    assert_eq!(rig.device.stats().kept_bytes, bytes);
    trap.watch();
    let second = rig.load(&weights, &config(2));
    assert!(!trap.calls().contains(&Call::DeviceAlloc));
    assert_eq!(second["h.0.w"].bytes().device_ptr(), place);
    drop(second);
    rig.device.trim();
    assert_eq!(rig.device.stats().device_bytes, 0);
    rig.assert_clean();
}

//! Waiting for a tensor with a timeout.

use std::task::Poll;
use std::time::Duration;

use pinlane::Device;
use pinlane::load::{LoadConfig, Weights};
use pinlane_model::Profile;
use pinlane_sim::Sim;

#[test]
#[cfg_attr(miri, ignore = "reads files")]
fn an_incomplete_tensor_is_pending_and_comes_later() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/load/sharded");
    let sim = Sim::new(Profile::builtin("pcie3-x16").expect("built in"));
    let device = Device::open(&sim, 0).expect("a device");
    let weights = Weights::open(folder).expect("good files");

    sim.hold(); // no copy completes
    let mut landing = weights
        .start(&device, &LoadConfig::default())
        .expect("room for it");
    for _ in 0..3 {
        let next = landing.next_within(Duration::from_millis(1));
        assert!(next.is_pending(), "{next:?}");
    }
    assert_eq!(landing.progress().bytes, 0);

    sim.release();
    let mut names = Vec::new();
    loop {
        match landing.next_within(Duration::from_millis(1)) {
            Poll::Pending => {}
            Poll::Ready(None) => break,
            Poll::Ready(Some(tensor)) => names.push(tensor.expect("loads").name().to_owned()),
        }
    }
    names.sort();
    let all = [
        "lm_head.weight",
        "model.layers.0.weight",
        "model.layers.1.weight",
    ];
    assert_eq!(names, all);
    drop(landing);
    drop(device);
    assert_eq!(sim.finish(), []);
}

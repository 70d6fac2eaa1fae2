//! Loads dropped at any time, and tensors that outlive everything else.

use pinlane::DeviceBuf;
use pinlane::load::{Dtype, LoadError, LoadStream, TargetStream, Tensor, Tensors, Weights};

use super::rig::{MODEL, Rig, config, model};
use super::support::Scratch;
use pinlane_testing::must_return;

#[test]
fn dropping_after_every_tensor() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    for threads in [1, 3] {
        for at in 0..=MODEL.len() {
            let weights = weights.clone();
            must_return(move || {
                let rig = Rig::new();
                let config = config(threads).convert(Dtype::Bf16);
                let mut landing = weights.start(&rig.device, &config).expect("it starts");
                let kept: Vec<_> = landing.by_ref().take(at).collect();
                drop(landing);
                for tensor in &kept {
                    rig.check(&weights, tensor.as_ref().expect("no error"), &config);
                }
                rig.load(&weights, &config);
                drop(kept);
                assert_eq!(rig.device.stats().device_bytes, 0);
                assert_eq!(rig.device.stats().parked, 0);
                rig.assert_clean();
            });
        }
    }
}

#[test]
fn several_loads_at_once() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let start = |threads| {
        weights
            .start(&rig.device, &config(threads))
            .expect("it starts")
    };
    let loads = [start(1), start(2), start(3)];
    for load in loads {
        for tensor in load {
            rig.check(&weights, &tensor.expect("no error"), &config(1));
        }
    }
    rig.assert_clean();
}

#[test]
fn tensors_outlive_device_and_files() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let tensors = weights.load(&rig.device, &config(2)).expect("no error");
    let Rig {
        sim,
        device,
        stream,
    } = rig;
    drop((device, scratch));
    let flag = stream.copy_to_vec(tensors["flag"].bytes()).expect("alive");
    assert_eq!(flag.len(), 1);
    drop((stream, tensors));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn types_are_send_and_sync() {
    fn assert_send<T: Send + 'static>() {}
    fn assert_sync<T: Sync>() {}
    assert_send::<(Weights, LoadStream, Tensor, Tensors, LoadError)>();
    assert_send::<TargetStream<DeviceBuf<u8>, ()>>();
    assert_sync::<(Weights, Tensor, Tensors, LoadError)>();
}

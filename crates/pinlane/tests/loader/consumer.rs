//! Consumers that are slow, hold on to batches, or work on them on streams of their own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pinlane::Builtin;
use pinlane_sim::SpanKind;

use super::common::{must_return, open, seeded};
use super::support::{LABEL, Made, Rig, config};

#[test]
fn all_batches_held_at_once() {
    must_return(|| {
        let rig = Rig::new();
        let loader = rig.loader(Made::new(60), config(3, 2));
        let epoch = loader.epoch(0).expect("none is under way");
        let held: Vec<_> = epoch.map(|batch| batch.expect("no fault")).collect();
        assert_eq!(held.len(), 20);
        held.iter().for_each(|batch| rig.check(batch));
        let before = rig.device.stats().device_bytes;
        drop(held);
        // A few are kept for the next epoch.
        rig.device.synchronize().expect("the device is alive");
        assert!(rig.device.stats().device_bytes < before / 3);
        drop(loader);
        rig.assert_clean();
    });
}

#[test]
fn no_more_is_read_ahead_than_asked_for() {
    let rig = Rig::new();
    let dataset = Made::new(60);
    let reads = Arc::clone(&dataset.reads);
    let mut config = config(3, 0);
    config.prefetch = 2;
    let loader = rig.loader(dataset, config);
    let mut epoch = loader.epoch(0).expect("none is under way");
    for taken in 0..18 {
        epoch.next().expect("a batch").expect("no fault");
        assert_eq!(reads.load(Ordering::Relaxed), 3 * (taken + 2));
    }
    drop((epoch, loader));
    rig.assert_clean();
}

/// A batch that is dropped while kernels still change it is not written over before they are done.
#[test]
fn kernels_on_a_batch_that_was_dropped() {
    for seed in 0..60 {
        must_return(move || {
            let sim = seeded(seed);
            let device = open(&sim);
            let rig = Rig::with(sim, device);
            let kernels = Builtin::load(&rig.device).expect("they load");
            let loader = rig.loader(Made::new(40), config(4, 1));
            let streams = [(); 3].map(|()| rig.device.stream().expect("a stream"));
            let mut sums = rig.device.alloc::<u32>(4 * 10).expect("enough memory");
            for (number, batch) in loader.epoch(0).expect("none is under way").enumerate() {
                let batch = batch.expect("no fault");
                let labels = batch.fields().nth(LABEL).expect("four fields");
                let stream = &streams[number % 3];
                let mut sums = sums.range_mut(4 * number..4 * number + 4);
                kernels.spin(stream, 50_000).expect("it runs");
                let labels = labels.typed::<u32>().expect("they are u32");
                stream
                    .copy_on_device(labels, sums.reborrow())
                    .expect("it fits");
                kernels.add(stream, 1, sums).expect("it runs");
            }
            let found = rig.stream.copy_to_vec(&sums).expect("the device is alive");
            assert!(found.into_iter().eq(1..=40));
            drop((loader, kernels, streams, sums));
            rig.assert_clean();
        });
    }
}

/// The copy of a batch runs while the kernel of another does.
#[test]
fn copies_run_beside_kernels() {
    let rig = Rig::new();
    let kernels = Builtin::load(&rig.device).expect("they load");
    let loader = rig.loader(Made::new(80), config(8, 0));
    for batch in loader.epoch(0).expect("none is under way") {
        let mut batch = batch.expect("no fault");
        // It waits for the batch, and then takes long.
        rig.stream
            .fill_bytes(batch.bytes_mut(0), 0)
            .expect("it fits");
        kernels.spin(&rig.stream, 1_000_000).expect("it runs");
    }
    let spans = rig.sim.timeline();
    let of = |kind| spans.iter().filter(move |span| span.kind == kind);
    let beside = |copy: &&pinlane_sim::Span| {
        of(SpanKind::Kernel("pinlane_spin"))
            .any(|kernel| kernel.start_ns <= copy.start_ns && copy.end_ns <= kernel.end_ns)
    };
    let copies = of(SpanKind::HostToDevice).filter(beside).count();
    assert!(copies >= 6, "only {copies} of 10 copies ran beside kernels");
    drop((loader, kernels));
    rig.assert_clean();
}

/// Without threads, a run on the simulator is the same every time, to the nanosecond.
#[test]
fn the_same_run_again() {
    let run = || {
        let rig = Rig::new();
        let kernels = Builtin::load(&rig.device).expect("they load");
        let loader = rig.loader(Made::new(50), config(4, 0));
        for epoch in 0..2 {
            for batch in loader.epoch(epoch).expect("the last has ended") {
                let mut batch = batch.expect("no fault");
                rig.stream
                    .fill_bytes(batch.bytes_mut(0), 0)
                    .expect("it fits");
                kernels.spin(&rig.stream, 30_000).expect("it runs");
            }
        }
        rig.stream.synchronize().expect("the device is alive");
        let trace = (rig.sim.now_ns(), rig.sim.trace_hash());
        drop((loader, kernels));
        rig.assert_clean();
        trace
    };
    assert_eq!(run(), run());
}

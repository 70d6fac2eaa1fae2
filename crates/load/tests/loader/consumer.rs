//! Consumers that are slow, hold on to batches, or work on them on streams of their own.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use pinlane::Builtin;
use pinlane::load::Dtype;
use pinlane::load::dataset::{Dataset, Field, SampleError, SampleMut};
use pinlane_sim::SpanKind;

use super::support::{LABEL, Made, Rig, config};
use pinlane_testing::{must_return, open, seeded};

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

/// A dataset that waits until it may go on.
#[derive(Clone)]
struct Gate(Arc<(Mutex<bool>, Condvar)>, [Field; 1]);

impl Gate {
    fn new() -> Self {
        Self(Arc::default(), [Field::fixed("number", Dtype::U8, [])])
    }

    fn open(&self) {
        *self.0.0.lock().expect("no panic") = true;
        self.0.1.notify_all();
    }
}

impl Dataset for Gate {
    fn len(&self) -> usize {
        8
    }

    fn fields(&self) -> &[Field] {
        &self.1
    }

    fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<(), SampleError> {
        let open = self.0.0.lock().expect("no panic");
        let wait = self.0.1.wait_while(open, |open| !*open);
        drop(wait.expect("no panic"));
        sample.fixed(0)[0] = index as u8;
        Ok(())
    }
}

#[test]
fn waiting_for_a_batch_ends_in_time() {
    let rig = Rig::new();
    let gate = Gate::new();
    let loader = rig.loader(gate.clone(), config(4, 2));
    let mut epoch = loader.epoch(0).expect("none is under way");
    assert!(!epoch.wait_timeout(Duration::ZERO), "nothing can be read");
    assert!(!epoch.wait_timeout(Duration::from_millis(1)));
    assert_eq!(loader.stats().batches, 0);
    gate.open();
    for _ in 0..2 {
        assert!(epoch.wait_timeout(Duration::MAX));
        epoch.next().expect("a batch").expect("no fault");
    }
    assert!(epoch.wait_timeout(Duration::MAX), "the end is known");
    assert!(epoch.next().is_none());
    assert!(epoch.wait_timeout(Duration::ZERO), "it is over");
    drop((epoch, loader));
    rig.assert_clean();
}

#[test]
fn without_workers_nothing_is_waited_for() {
    let rig = Rig::new();
    let loader = rig.loader(Made::new(9), config(4, 0));
    let mut epoch = loader.epoch(0).expect("none is under way");
    assert!(epoch.wait_timeout(Duration::ZERO));
    assert_eq!(loader.workers(), 0);
    epoch.next().expect("a batch").expect("no fault");
    drop((epoch, loader));
    rig.assert_clean();
}

//! Consumers that are slow, keep batches, or use their own streams.

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
fn all_batches_can_be_held_at_once() {
    must_return(|| {
        let rig = Rig::new();
        let loader = rig.loader(Made::new(60), config(3, 2));
        let epoch = loader.epoch(0).expect("no epoch is running");
        let held: Vec<_> = epoch.map(|batch| batch.expect("no error")).collect();
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
fn prefetch_limits_reading_ahead() {
    let rig = Rig::new();
    let dataset = Made::new(60);
    let reads = Arc::clone(&dataset.reads);
    let mut config = config(3, 0);
    config.prefetch = 2;
    let loader = rig.loader(dataset, config);
    let mut epoch = loader.epoch(0).expect("no epoch is running");
    for taken in 0..18 {
        epoch.next().expect("a batch").expect("no error");
        assert_eq!(reads.load(Ordering::Relaxed), 3 * (taken + 2));
    }
    drop((epoch, loader));
    rig.assert_clean();
}

#[test]
fn memory_of_a_dropped_batch_is_reused_after_its_kernels() {
    for seed in 0..60 {
        must_return(move || {
            let sim = seeded(seed);
            let device = open(&sim);
            let rig = Rig::with(sim, device);
            let kernels = Builtin::load(&rig.device).expect("they load");
            let loader = rig.loader(Made::new(40), config(4, 1));
            let streams = [(); 3].map(|()| rig.device.stream().expect("a stream"));
            let mut sums = rig.device.alloc::<u32>(4 * 10).expect("enough memory");
            for (number, batch) in loader.epoch(0).expect("no epoch is running").enumerate() {
                let batch = batch.expect("no error");
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

/// The copy of one batch overlaps the kernel of another.
#[test]
fn copies_run_beside_kernels() {
    let rig = Rig::new();
    let kernels = Builtin::load(&rig.device).expect("they load");
    let loader = rig.loader(Made::new(80), config(8, 0));
    for batch in loader.epoch(0).expect("no epoch is running") {
        let mut batch = batch.expect("no error");
        // Waits for the batch, then runs for a while.
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

/// To the nanosecond of the simulated clock.
#[test]
fn runs_without_workers_are_deterministic() {
    let run = || {
        let rig = Rig::new();
        let kernels = Builtin::load(&rig.device).expect("they load");
        let loader = rig.loader(Made::new(50), config(4, 0));
        for epoch in 0..2 {
            for batch in loader.epoch(epoch).expect("the last has ended") {
                let mut batch = batch.expect("no error");
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

/// A dataset whose reads wait until the gate is open.
#[derive(Clone)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>, [Field; 1]);

impl Gate {
    pub fn new() -> Self {
        Self(Arc::default(), [Field::fixed("number", Dtype::U8, [])])
    }

    pub fn open(&self) {
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
fn wait_timeout_returns_in_time() {
    let rig = Rig::new();
    let gate = Gate::new();
    let loader = rig.loader(gate.clone(), config(4, 2));
    let mut epoch = loader.epoch(0).expect("no epoch is running");
    assert!(!epoch.wait_timeout(Duration::ZERO), "nothing can be read");
    assert!(!epoch.wait_timeout(Duration::from_millis(1)));
    assert_eq!(loader.stats().batches, 0);
    gate.open();
    for _ in 0..2 {
        assert!(epoch.wait_timeout(Duration::MAX));
        epoch.next().expect("a batch").expect("no error");
    }
    assert!(epoch.wait_timeout(Duration::MAX), "the end is known");
    assert!(epoch.next().is_none());
    assert!(epoch.wait_timeout(Duration::ZERO), "it is over");
    drop((epoch, loader));
    rig.assert_clean();
}

#[test]
fn wait_timeout_is_always_true_without_workers() {
    let rig = Rig::new();
    let loader = rig.loader(Made::new(9), config(4, 0));
    let mut epoch = loader.epoch(0).expect("no epoch is running");
    assert!(epoch.wait_timeout(Duration::ZERO));
    assert_eq!(loader.workers(), 0);
    epoch.next().expect("a batch").expect("no error");
    drop((epoch, loader));
    rig.assert_clean();
}

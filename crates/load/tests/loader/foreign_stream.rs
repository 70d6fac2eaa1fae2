//! Consumers of another library, which use batches by their address on a stream of their own.

use std::sync::Arc;

use pinlane::driver::{CopyOp, Driver, Place, StreamFlags, StreamHandle};
use pinlane::load::Batch;
use pinlane::{DevicePtr, Stream};
use pinlane_sim::Sim;

use super::support::{LABEL, Made, Rig, config};
use pinlane_testing::{must_return, open, seeded};

const BATCHES: usize = 10;
const BATCH: usize = 4;
const LABEL_BYTES: usize = BATCH * size_of::<u32>();
const SLOW_BYTES: usize = 1 << 20;
const SEEDS: u64 = 60;

/// Another library: it calls the driver directly.
struct Library {
    driver: Arc<dyn Driver>,
    stream: StreamHandle,
    labels: DevicePtr,
    slow: DevicePtr,
}

impl Library {
    fn new(sim: &Sim) -> Self {
        let driver = sim.driver();
        let flags = StreamFlags {
            non_blocking: true,
            priority: 0,
        };
        Self {
            stream: driver.stream_create(flags).unwrap(),
            labels: driver.device_alloc(BATCHES * LABEL_BYTES).unwrap(),
            slow: driver.device_alloc(SLOW_BYTES).unwrap(),
            driver,
        }
    }

    /// Copies the labels of a batch, behind other work, and returns at once.
    fn use_batch(&self, number: usize, batch: &Batch) {
        let labels = batch.fields().nth(LABEL).unwrap().bytes();
        assert_eq!(labels.len(), LABEL_BYTES);
        let copy = CopyOp {
            source: Place::Device(labels.device_ptr()),
            target: Place::Device(self.labels.offset(number * LABEL_BYTES)),
            bytes: LABEL_BYTES,
        };
        // SAFETY: all places hold as many bytes. The batch is there, and stays until this is done: that is tested.
        unsafe {
            let (driver, stream) = (&self.driver, self.stream);
            driver
                .memset_async(self.slow, 1, SLOW_BYTES, stream)
                .unwrap();
            driver.copy_async(copy, stream).unwrap();
        }
    }

    fn labels(&self) -> Vec<u32> {
        let mut labels = vec![0u32; BATCHES * BATCH];
        let copy = CopyOp {
            source: Place::Device(self.labels),
            target: Place::Host(std::ptr::NonNull::from(&mut labels[0]).cast()),
            bytes: BATCHES * LABEL_BYTES,
        };
        // SAFETY: both places hold as many bytes until the stream is idle.
        unsafe {
            self.driver.copy_async(copy, self.stream).unwrap();
            self.driver.stream_synchronize(self.stream).unwrap();
        }
        labels
    }

    fn close(self) {
        // SAFETY: nothing uses them any more.
        unsafe {
            self.driver.device_free(self.labels).unwrap();
            self.driver.device_free(self.slow).unwrap();
            self.driver.stream_destroy(self.stream).unwrap();
        }
    }
}

/// The labels that a library sees if batches are made `ready` for its stream and `released` when it has
/// submitted its work.
fn labels_seen(
    seed: u64,
    ready: fn(&Batch, &Stream),
    released: fn(Batch, &Rig, &Stream),
) -> Vec<u32> {
    must_return(move || {
        let sim = seeded(seed);
        let library = Library::new(&sim);
        let device = open(&sim);
        // SAFETY: the library's stream outlives the device.
        let theirs = unsafe { Stream::from_raw(&device, library.stream.raw()) };
        let rig = Rig::with(sim, device);
        let loader = rig.loader(Made::new(BATCHES * BATCH), config(BATCH, 1));
        for (number, batch) in loader.epoch(0).unwrap().enumerate() {
            let batch = batch.unwrap();
            ready(&batch, &theirs);
            library.use_batch(number, &batch);
            released(batch, &rig, &theirs);
        }
        let labels = library.labels();
        rig.device.synchronize().unwrap();
        drop((loader, theirs));
        library.close();
        rig.assert_clean();
        labels
    })
}

fn is_ready(batch: &Batch, theirs: &Stream) {
    batch.ready_on(theirs).unwrap();
}

/// Whether every label was seen, in order.
fn are_all(seen: Vec<u32>) -> bool {
    seen.into_iter().eq(0..(BATCHES * BATCH) as u32)
}

#[test]
fn a_batch_is_reused_after_the_work_of_its_consumer() {
    for seed in 0..SEEDS {
        let seen = labels_seen(seed, is_ready, |batch, _, theirs| {
            batch.used_on(theirs).unwrap();
        });
        assert!(are_all(seen), "seed {seed}");
    }
}

#[test]
fn a_batch_whose_stream_is_not_known_is_reused_when_the_device_was_idle() {
    for seed in 0..SEEDS {
        let seen = labels_seen(seed, is_ready, |batch, rig, _| {
            rig.device.release_when_idle(Arc::new(batch));
        });
        assert!(are_all(seen), "seed {seed}");
    }
}

/// Shows that the tests above can fail.
#[test]
fn without_the_fences_another_batch_is_seen() {
    let wrong = |ready: fn(&Batch, &Stream), released: fn(Batch, &Rig, &Stream)| {
        (0..SEEDS).any(|seed| !are_all(labels_seen(seed, ready, released)))
    };
    assert!(wrong(is_ready, |batch, _, _| drop(batch)));
    assert!(wrong(
        |_, _| (),
        |batch, _, theirs| {
            batch.used_on(theirs).unwrap();
        }
    ));
}

#[test]
fn a_batch_can_be_shared_and_sent() {
    fn check<T: Send + Sync + 'static>() {}
    check::<Batch>();
}

#[test]
fn streams_of_another_device_are_refused() {
    let rig = Rig::new();
    let other = open(&pinlane_testing::sim()).stream().unwrap();
    let loader = rig.loader(Made::new(BATCH), config(BATCH, 0));
    let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
    assert_eq!(batch.ready_on(&other), Err(pinlane::Error::WrongDevice));
    assert_eq!(batch.used_on(&other), Err(pinlane::Error::WrongDevice));
    drop((batch, loader));
    rig.assert_clean();
}

//! Dropping things at any time, in any order.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use pinlane::load::dataset::{Dataset, from_fn};
use pinlane::load::{Batch, Epoch, Loader, LoaderError};

use super::support::{Made, Rig, config, drain};
use pinlane_testing::must_return;

#[test]
fn an_epoch_at_every_batch() {
    for workers in [0, 1, 4] {
        must_return(move || {
            for at in 0..=8 {
                let rig = Rig::new();
                let dataset = Made::new(30);
                let reads = Arc::clone(&dataset.reads);
                let loader = rig.loader(dataset, config(4, workers));
                let mut epoch = loader.epoch(0).expect("no epoch is running");
                for batch in epoch.by_ref().take(at) {
                    rig.check(&batch.expect("no error"));
                }
                drop(epoch);
                // All threads have ended: only this test and the loader hold it.
                assert_eq!(Arc::strong_count(&reads), 2);
                let (batches, error) = drain(&rig, loader.epoch(1).expect("the last is dropped"));
                assert!(batches.concat().into_iter().eq(0..30) && error.is_none());
                drop(loader);
                rig.assert_nothing_pinned();
                assert_eq!(Arc::strong_count(&reads), 1);
                rig.assert_clean();
            }
        });
    }
}

#[test]
fn a_loader_before_its_epoch_and_its_batches() {
    let rig = Rig::new();
    let loader = rig.loader(Made::new(30), config(4, 2));
    let mut epoch = loader.epoch(0).expect("no epoch is running");
    drop(loader);
    let first = epoch.next().expect("a batch").expect("no error");
    let second = epoch.next().expect("a batch").expect("no error");
    drop(epoch);
    rig.assert_nothing_pinned();
    rig.check(&second);
    let rig = thread::spawn(move || {
        rig.check(&first);
        drop(first);
        rig
    });
    let rig = rig.join().expect("no panic");
    rig.check(&second);
    drop(second);
    rig.assert_clean();
}

#[test]
fn one_epoch_at_a_time() {
    let rig = Rig::new();
    let loader = rig.loader(Made::new(30), config(4, 1));
    let mut epoch = loader.epoch(0).expect("no epoch is running");
    let refused = loader.clone().epoch(1).expect_err("one is under way");
    assert!(matches!(refused, LoaderError::Busy), "{refused}");
    epoch
        .by_ref()
        .for_each(|batch| drop(batch.expect("no error")));
    // It has ended, though it was not dropped.
    let next = loader.epoch(1).expect("the last has ended");
    drop(epoch);
    assert!(matches!(loader.epoch(2), Err(LoaderError::Busy)));
    drop((next, loader));
    rig.assert_clean();
}

#[test]
fn a_shared_dataset_of_any_kind() {
    let rig = Rig::new();
    let dataset: Arc<dyn Dataset> = Arc::new(Made::new(9));
    let one = rig.loader(Arc::clone(&dataset), config(4, 1));
    let other = rig.loader(dataset, config(2, 1));
    for loader in [one, other] {
        let (batches, error) = drain(&rig, loader.epoch(0).expect("no epoch is running"));
        assert!(batches.concat().into_iter().eq(0..9) && error.is_none());
    }
    rig.assert_clean();
}

/// The device makes no progress, and still no drop waits for it.
#[test]
fn nothing_waits_for_a_stalled_device_when_dropped() {
    for workers in [1, 4] {
        for loader_first in [false, true] {
            let (rig, batches) = must_return(move || {
                let rig = Rig::new();
                let loader = rig.loader(Made::new(90), config(3, workers));
                rig.sim.hold();
                let mut epoch = loader.epoch(0).expect("no epoch is running");
                let batches: Vec<Batch> = epoch
                    .by_ref()
                    .take(3)
                    .map(|batch| batch.expect("no error"))
                    .collect();
                match loader_first {
                    true => drop((loader, epoch)),
                    false => drop((epoch, loader)),
                }
                (rig, batches)
            });
            // Memory in flight is freed when its copy is done.
            assert!(rig.device.stats().parked > 0);
            rig.sim.release();
            batches.iter().for_each(|batch| rig.check(batch));
            rig.device.synchronize().expect("the device is alive");
            rig.assert_nothing_pinned();
            drop(batches);
            rig.assert_clean();
        }
    }
}

/// The loader, once its last epoch has ended.
fn next_epoch(loader: &Loader) -> Epoch {
    loop {
        match loader.epoch(1) {
            Err(LoaderError::Busy) => thread::yield_now(),
            epoch => return epoch.expect("no other error"),
        }
    }
}

#[test]
fn an_epoch_inside_a_read() {
    for workers in [1, 3] {
        must_return(move || {
            let rig = Rig::new();
            let held: Arc<Mutex<Option<Epoch>>> = Arc::default();
            let (made, drops) = (Made::new(30), Arc::clone(&held));
            let fields = made.fields().to_vec();
            let dataset = from_fn(30, fields, move |index, sample| {
                // Under the lock that the other workers wait for.
                drop(drops.lock().expect("no panic").take());
                made.read(index, sample)
            });
            let loader = rig.loader(dataset, config(4, workers));
            let mut waiting = held.lock().expect("no panic");
            *waiting = Some(loader.epoch(0).expect("no epoch is running"));
            drop(waiting);
            let (batches, error) = drain(&rig, next_epoch(&loader));
            assert!(batches.concat().into_iter().eq(0..30) && error.is_none());
            drop(loader);
            rig.assert_clean();
        });
    }
}

/// One sample fails while the epoch's other worker is inside a read, and the consumer awaits the end. So the
/// thread that closes the epoch waits for that worker.
#[test]
fn an_epoch_inside_a_read_while_it_closes() {
    must_return(|| {
        let rig = Rig::new();
        let held: Arc<(Mutex<Option<Epoch>>, Condvar)> = Arc::default();
        let (drops, both, reads) = (Arc::clone(&held), Barrier::new(2), AtomicUsize::new(0));
        let dataset = from_fn(2, [], move |index, _| {
            // The last epoch may be dropped when one worker, or both, are inside a read.
            if reads.fetch_add(1, Ordering::Relaxed) >= 2 {
                return Ok(());
            }
            both.wait();
            if index == 0 {
                return Err("broken on purpose".into());
            }
            let held = drops.0.lock().expect("no panic");
            let mut held = drops
                .1
                .wait_while(held, |held| held.is_none())
                .expect("no panic");
            drop(held.take());
            Ok(())
        });
        let loader = rig.loader(dataset, config(1, 2));
        let mut epoch = loader.epoch(0).expect("no epoch is running");
        while !epoch.wait_timeout(Duration::from_secs(1)) {}
        let next = pin!(epoch.next_batch());
        let polled = next.poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "the other worker is inside a read");
        *held.0.lock().expect("no panic") = Some(epoch);
        held.1.notify_all();
        while held.0.lock().expect("no panic").is_some() {
            thread::yield_now();
        }
        while matches!(loader.epoch(7), Err(LoaderError::Busy)) {
            thread::yield_now();
        }
        drop(loader);
        rig.assert_clean();
    });
}

#[test]
fn public_types_are_send_and_sync() {
    fn sent<T: Send + 'static>() {}
    fn shared<T: Sync>() {}
    sent::<(Loader, Epoch, Batch, LoaderError)>();
    shared::<(Loader, Batch, LoaderError)>();
}

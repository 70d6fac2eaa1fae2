//! Batches that are awaited.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use pinlane::load::{Batch, Epoch, LoaderError};
use pinlane_conformance::library::block_on;

use super::consumer::Gate;
use super::support::{Made, Rig, Trouble, config, drain};
use pinlane_testing::must_return;

fn poll_once(epoch: &mut Epoch) -> Poll<Option<Result<Batch, LoaderError>>> {
    let next = pin!(epoch.next_batch());
    next.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn awaiting_gives_the_same_batches_as_iterating() {
    for workers in [0, 1, 3] {
        must_return(move || {
            let rig = Rig::new();
            let loader = rig.loader(Made::new(23), config(4, workers));
            let (expected, _) = drain(&rig, loader.epoch(0).expect("no epoch is running"));
            let mut epoch = loader.epoch(0).expect("the last has ended");
            let awaited = std::iter::from_fn(|| block_on(epoch.next_batch()));
            let (found, error) = drain(&rig, awaited);
            assert!(error.is_none() && found == expected);
            assert!(block_on(epoch.next_batch()).is_none() && epoch.next().is_none());
            // The end has released the loader.
            drop(loader.epoch(1).expect("the epoch has ended"));
            drop((epoch, loader));
            rig.assert_clean();
        });
    }
}

#[test]
fn an_error_ends_the_epoch() {
    for workers in [0, 2] {
        must_return(move || {
            let rig = Rig::new();
            let trouble = Trouble {
                fail: [9].into(),
                ..Trouble::default()
            };
            let loader = rig.loader(Made::with(23, trouble), config(4, workers));
            let mut epoch = loader.epoch(0).expect("no epoch is running");
            let awaited = std::iter::from_fn(|| block_on(epoch.next_batch()));
            let (batches, error) = drain(&rig, awaited);
            assert_eq!(batches.len(), 2);
            assert!(matches!(error, Some(LoaderError::Sample { index: 9, .. })));
            assert_eq!(epoch.state().batch, 2);
            drop(loader.epoch(0).expect("the epoch has ended"));
            drop((epoch, loader));
            rig.assert_clean();
        });
    }
}

#[test]
fn a_pending_future_does_not_block_and_loses_nothing() {
    must_return(|| {
        let rig = Rig::new();
        let gate = Gate::new();
        let loader = rig.loader(gate.clone(), config(4, 2));
        let mut epoch = loader.epoch(0).expect("no epoch is running");
        for _ in 0..3 {
            assert!(poll_once(&mut epoch).is_pending(), "the gate is closed");
        }
        let opener = thread::spawn(move || {
            thread::sleep(Duration::from_millis(5));
            gate.open();
        });
        for batch in 0..2 {
            let next = block_on(epoch.next_batch()).expect("a batch");
            assert_eq!(next.expect("no error").number(), batch);
        }
        opener.join().expect("no panic");
        assert!(loader.stats().consumer_wait_ns > 0);
        // Iterating or dropping after a pending poll of the end is fine, too.
        if let Poll::Ready(end) = poll_once(&mut epoch) {
            assert!(end.is_none());
        }
        assert!(epoch.next().is_none());
        drop((epoch, loader));
        rig.assert_clean();
    });
}

#[test]
fn an_epoch_dropped_while_it_closes_releases_the_loader() {
    must_return(|| {
        let rig = Rig::new();
        let loader = rig.loader(Made::new(8), config(4, 2));
        for _ in 0..20 {
            let mut epoch = loader.epoch(0).expect("the last was dropped");
            for _ in 0..2 {
                let next = block_on(epoch.next_batch()).expect("a batch");
                next.expect("no error");
            }
            let _ = poll_once(&mut epoch);
        }
        drop(loader);
        rig.assert_clean();
    });
}

//! Step-by-step tests of the protocol. See `loom_models` for interleavings.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::test_fence::TestFence;
use super::{Access, DeferredFree, Extent, Fence, InFlight, Ledger};
use crate::sync::Arc;

fn access(stream: u64, bytes: std::ops::Range<usize>, writes: bool) -> Access {
    Access {
        stream,
        extent: Extent::One(bytes),
        writes,
    }
}

/// Number of fences that `next` has to wait for.
fn waits(ledger: &Ledger<TestFence>, next: Access) -> usize {
    ledger.conflicts(&next).count()
}

#[test]
fn writer_waits_for_every_reader() {
    let mut ledger = Ledger::new();
    ledger.record(access(1, 0..8, false), TestFence::new());
    ledger.record(access(2, 0..8, false), TestFence::new());
    ledger.record(access(3, 2..4, false), TestFence::new());
    assert_eq!(waits(&ledger, access(4, 0..8, true)), 3);
    assert_eq!(
        waits(&ledger, access(4, 4..8, true)),
        2,
        "stream 3 reads elsewhere"
    );
    assert_eq!(waits(&ledger, access(4, 0..8, false)), 0, "readers share");
}

#[test]
fn reader_waits_for_the_last_writer_only() {
    let mut ledger = Ledger::new();
    ledger.record(access(1, 0..8, true), TestFence::new());
    ledger.record(access(2, 0..8, true), TestFence::new());
    assert_eq!(waits(&ledger, access(3, 0..8, false)), 1);
}

#[test]
fn partial_writer_does_not_hide_the_rest() {
    let mut ledger = Ledger::new();
    ledger.record(access(1, 0..8, true), TestFence::new());
    ledger.record(access(2, 0..4, true), TestFence::new());
    assert_eq!(waits(&ledger, access(3, 4..8, false)), 1);
    assert_eq!(waits(&ledger, access(3, 0..8, false)), 2);
}

#[test]
fn reading_does_not_hide_an_earlier_write_of_the_same_stream() {
    let mut ledger = Ledger::new();
    ledger.record(access(1, 0..8, true), TestFence::new());
    ledger.record(access(1, 0..8, false), TestFence::new());
    assert_eq!(
        waits(&ledger, access(2, 0..8, false)),
        1,
        "the write still counts"
    );
}

#[test]
fn same_stream_is_in_order_by_itself() {
    let mut ledger = Ledger::new();
    ledger.record(access(1, 0..8, true), TestFence::new());
    assert_eq!(waits(&ledger, access(1, 0..8, true)), 0);
}

#[test]
fn books_stay_short() {
    let mut ledger = Ledger::new();
    for at in 0..1000 {
        let fence = TestFence::new();
        fence.fire();
        ledger.record(access(1, at..at + 1, true), fence);
    }
    assert!(ledger.fences().count() <= 32);
}

struct Tracked(Arc<AtomicUsize>);

impl Drop for Tracked {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn in_flight(
    deferred: &Arc<DeferredFree<TestFence>>,
) -> (InFlight<Tracked, TestFence>, TestFence, Arc<AtomicUsize>) {
    let (fence, freed) = (TestFence::new(), Arc::new(AtomicUsize::new(0)));
    let flight = InFlight::new(
        Tracked(Arc::clone(&freed)),
        fence.clone(),
        Arc::clone(deferred),
    );
    (flight, fence, freed)
}

#[test]
fn dropped_flight_is_parked_until_it_lands() {
    let deferred = Arc::new(DeferredFree::new());
    let (flight, fence, freed) = in_flight(&deferred);
    drop(flight);
    assert_eq!(
        (
            deferred.len(),
            deferred.reclaim(),
            freed.load(Ordering::Relaxed)
        ),
        (1, 0, 0)
    );
    fence.fire();
    assert_eq!(
        (
            deferred.reclaim(),
            deferred.len(),
            freed.load(Ordering::Relaxed)
        ),
        (1, 0, 1)
    );
}

#[test]
fn flight_that_nobody_can_prove_landed_keeps_its_buffer_away() {
    let deferred = Arc::new(DeferredFree::new());
    let (mut flight, fence, freed) = in_flight(&deferred);
    let landed = flight.land(); // waiting on the test fence fails
    assert!(landed.result.is_err() && landed.buffer.is_none());
    assert_eq!((deferred.len(), freed.load(Ordering::Relaxed)), (1, 0));
    fence.fire();
    assert_eq!((deferred.reclaim(), freed.load(Ordering::Relaxed)), (1, 1));
}

#[test]
fn dead_device_gives_the_buffer_back_with_the_error() {
    let deferred = Arc::new(DeferredFree::new());
    let (mut flight, fence, freed) = in_flight(&deferred);
    fence.lose_device();
    let landed = flight.land();
    assert!(landed.result.unwrap_err().is_fatal());
    assert_eq!(freed.load(Ordering::Relaxed), 0);
    drop(landed.buffer);
    assert_eq!((deferred.len(), freed.load(Ordering::Relaxed)), (0, 1));
}

#[test]
fn closing_frees_what_landed_and_abandons_the_rest() {
    let deferred = Arc::new(DeferredFree::new());
    let (landed, fence, freed) = in_flight(&deferred);
    let (stuck, _never, leaked) = in_flight(&deferred);
    drop((landed, stuck));
    fence.fire();
    assert!(fence.is_done().unwrap());
    let closed = deferred.close(Duration::ZERO);
    assert_eq!((closed.freed, closed.abandoned), (1, 1));
    assert_eq!(
        (
            freed.load(Ordering::Relaxed),
            leaked.load(Ordering::Relaxed)
        ),
        (1, 0)
    );
}

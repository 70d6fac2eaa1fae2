//! Step-by-step tests of the protocol. See `loom_models` for interleavings.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::test_fence::TestFence;
use super::{Access, DeferredFree, Extent, Fence, InFlight, Ledger, ReleaseQueue};
use crate::sync::Arc;

fn access(stream: u64, bytes: Range<usize>, writes: bool) -> Access {
    Access {
        stream,
        extent: Extent::One(bytes),
        writes,
    }
}

fn read(stream: u64, bytes: Range<usize>) -> Access {
    access(stream, bytes, false)
}

fn write(stream: u64, bytes: Range<usize>) -> Access {
    access(stream, bytes, true)
}

#[test]
fn uses_wait_for_the_earlier_ones_that_they_conflict_with() {
    let readers = || vec![read(1, 0..8), read(2, 0..8), read(3, 2..4)];
    let part_overwritten = || vec![write(1, 0..8), write(2, 0..4)];
    let overwritten = vec![write(1, 0..8), write(2, 0..8)];
    let read_back = vec![write(1, 0..8), read(1, 0..8)];
    let same_stream = vec![write(1, 0..8)];
    for (rule, earlier, next, waits) in [
        (
            "a writer waits for all readers",
            readers(),
            write(4, 0..8),
            3,
        ),
        ("stream 3 reads elsewhere", readers(), write(4, 4..8), 2),
        ("readers share", readers(), read(4, 0..8), 0),
        ("only the last writer counts", overwritten, read(3, 0..8), 1),
        (
            "a part does not hide the rest",
            part_overwritten(),
            read(3, 4..8),
            1,
        ),
        ("both parts count", part_overwritten(), read(3, 0..8), 2),
        ("reading hides no write", read_back, read(2, 0..8), 1),
        (
            "a stream is in order by itself",
            same_stream,
            write(1, 0..8),
            0,
        ),
    ] {
        let mut ledger = Ledger::new();
        for access in earlier {
            ledger.record(access, TestFence::new());
        }
        assert_eq!(ledger.conflicts(&next).count(), waits, "{rule}");
    }
}

#[test]
fn books_stay_short() {
    let mut ledger = Ledger::new();
    for at in 0..1000 {
        let fence = TestFence::new();
        fence.fire();
        ledger.record(write(1, at..at + 1), fence);
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
) -> (InFlight<Tracked, TestFence>, TestFence, impl Fn() -> usize) {
    let (fence, freed) = (TestFence::new(), Arc::new(AtomicUsize::new(0)));
    let buffer = Tracked(Arc::clone(&freed));
    let flight = InFlight::new(buffer, fence.clone(), Arc::clone(deferred));
    (flight, fence, move || freed.load(Ordering::Relaxed))
}

#[test]
fn dropped_flight_is_parked_until_it_lands() {
    let deferred = Arc::new(DeferredFree::new());
    let (flight, fence, freed) = in_flight(&deferred);
    drop(flight);
    assert_eq!((deferred.len(), deferred.reclaim(), freed()), (1, 0, 0));
    fence.fire();
    assert_eq!((deferred.reclaim(), deferred.len(), freed()), (1, 0, 1));
}

#[test]
fn flight_that_nobody_can_prove_landed_keeps_its_buffer_away() {
    let deferred = Arc::new(DeferredFree::new());
    let (mut flight, fence, freed) = in_flight(&deferred);
    let landed = flight.land(); // waiting on the test fence fails
    assert!(matches!(landed, Err((_, None))));
    assert_eq!((deferred.len(), freed()), (1, 0));
    fence.fire();
    assert_eq!((deferred.reclaim(), freed()), (1, 1));
}

#[test]
fn dead_device_gives_the_buffer_back_with_the_error() {
    let deferred = Arc::new(DeferredFree::new());
    let (mut flight, fence, freed) = in_flight(&deferred);
    fence.lose_device();
    let Err((error, Some(buffer))) = flight.land() else {
        panic!("the device is lost");
    };
    assert!(error.is_fatal() && freed() == 0);
    drop(buffer);
    assert_eq!((deferred.len(), freed()), (0, 1));
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
    assert_eq!((freed(), leaked()), (1, 0));
}

#[test]
fn a_release_drops_what_was_queued_before_its_wait() {
    struct Counts(Arc<AtomicUsize>);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let counted = || dropped.load(Ordering::Relaxed);
    let queue = ReleaseQueue::new();
    let push = || queue.push(Counts(Arc::clone(&dropped)));
    assert!(queue.release(|| unreachable!("nothing is queued")));
    push();
    assert!(!queue.release(|| false));
    assert_eq!((queue.len(), counted()), (1, 0), "it may still be in use");
    let waited = queue.release(|| {
        push();
        true
    });
    assert!(waited);
    assert_eq!((queue.len(), counted()), (1, 1));
    // Without a wait nothing is dropped, whatever happens to the queue.
    push();
    queue.give_up().into_iter().for_each(std::mem::forget);
    assert_eq!((queue.len(), counted()), (0, 1));
    push();
    drop(queue);
    assert_eq!(counted(), 1);
}

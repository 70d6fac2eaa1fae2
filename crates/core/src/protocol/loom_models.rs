//! Every interleaving of the protocol's small races, explored by loom.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p pinlane-core --lib --release loom_models`

use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use loom::future::block_on;
use loom::sync::atomic::AtomicUsize as LoomUsize;
use loom::thread;

use super::test_fence::TestFence;
use super::{Completion, DeferredFree, FreeList, InFlight};
use crate::sync::{Arc, Ordering};

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// A buffer that counts how often it was freed, and whether its fence had fired by then.
struct ModelBuffer {
    fence: TestFence,
    freed: Freed,
}

/// Not loom's `Arc`: loom takes what an abandoned buffer keeps for a leak.
type Freed = std::sync::Arc<LoomUsize>;

impl Drop for ModelBuffer {
    fn drop(&mut self) {
        use super::Fence;
        assert!(self.fence.is_done().unwrap(), "freed while in flight");
        self.freed.fetch_add(1, Ordering::AcqRel);
    }
}

fn in_flight(
    deferred: &Arc<DeferredFree<TestFence>>,
) -> (InFlight<ModelBuffer, TestFence>, TestFence, Freed) {
    let (fence, freed) = (TestFence::new(), Freed::new(LoomUsize::new(0)));
    let buffer = ModelBuffer {
        fence: fence.clone(),
        freed: Freed::clone(&freed),
    };
    let flight = InFlight::new(buffer, fence.clone(), Arc::clone(deferred));
    (flight, fence, freed)
}

#[test]
fn slot_is_never_claimed_twice() {
    loom::model(|| {
        let slots = Arc::new(FreeList::new());
        let made = Arc::new(LoomUsize::new(0));
        let owners: Arc<[LoomUsize; 2]> = Arc::new([LoomUsize::new(0), LoomUsize::new(0)]);
        let work = {
            let (slots, made, owners) =
                (Arc::clone(&slots), Arc::clone(&made), Arc::clone(&owners));
            move || {
                for _ in 0..2 {
                    let slot = slots
                        .claim(|| Ok::<_, ()>(made.fetch_add(1, Ordering::AcqRel)))
                        .unwrap();
                    assert_eq!(owners[slot].fetch_add(1, Ordering::AcqRel), 0, "two owners");
                    owners[slot].fetch_sub(1, Ordering::AcqRel);
                    slots.release(slot);
                }
            }
        };
        let other = thread::spawn(work.clone());
        work();
        other.join().unwrap();
        assert_eq!(
            slots.drain().len(),
            made.load(Ordering::Acquire),
            "a slot was lost"
        );
    });
}

#[test]
fn completion_wakes_the_task_that_polls() {
    loom::model(|| {
        let told = Arc::new(Completion::new());
        let teller = Arc::clone(&told);
        let callback = thread::spawn(move || wake(teller.complete(7)));
        // Loom reports a deadlock when the wake-up is lost.
        assert_eq!(block_on(poll_fn(|context| told.poll(context))), 7);
        callback.join().unwrap();
    });
}

#[test]
fn awaited_flight_gives_its_buffer_back() {
    loom::model(|| {
        let deferred = Arc::new(DeferredFree::new());
        let (mut flight, fence, freed) = in_flight(&deferred);
        let mut callback = None;
        let landed = block_on(poll_fn(|context| {
            flight.poll(context, |_, told| {
                let fence = fence.clone();
                callback = Some(thread::spawn(move || {
                    fence.fire();
                    wake(told.complete(Ok(())));
                }));
                Ok(())
            })
        }));
        assert_eq!(
            freed.load(Ordering::Acquire),
            0,
            "the buffer comes back unfreed"
        );
        assert!(landed.result.is_ok());
        drop(landed.buffer);
        callback.unwrap().join().unwrap();
        assert_eq!((freed.load(Ordering::Acquire), deferred.len()), (1, 0));
    });
}

#[test]
fn completion_against_cancellation() {
    loom::model(|| {
        let deferred = Arc::new(DeferredFree::new());
        let (mut flight, fence, freed) = in_flight(&deferred);
        let mut context = Context::from_waker(Waker::noop());
        let mut callback = None;
        let polled = flight.poll(&mut context, |_, told| {
            let fence = fence.clone();
            callback = Some(thread::spawn(move || {
                fence.fire();
                wake(told.complete(Ok(())));
            }));
            Ok(())
        });
        match polled {
            Poll::Ready(landed) => drop(landed.buffer),
            Poll::Pending => drop(flight), // cancelled while the callback may be running
        }
        callback.unwrap().join().unwrap();
        deferred.reclaim();
        assert_eq!((freed.load(Ordering::Acquire), deferred.len()), (1, 0));
    });
}

#[test]
fn drop_against_completion() {
    loom::model(|| {
        let deferred = Arc::new(DeferredFree::new());
        let (flight, fence, freed) = in_flight(&deferred);
        let engine = thread::spawn(move || fence.fire());
        let reclaimer = {
            let deferred = Arc::clone(&deferred);
            thread::spawn(move || deferred.reclaim())
        };
        drop(flight);
        engine.join().unwrap();
        reclaimer.join().unwrap();
        deferred.reclaim();
        assert_eq!((freed.load(Ordering::Acquire), deferred.len()), (1, 0));
    });
}

#[test]
fn reclaim_at_shutdown() {
    loom::model(|| {
        let deferred = Arc::new(DeferredFree::new());
        let (first, first_fence, first_freed) = in_flight(&deferred);
        let (second, second_fence, second_freed) = in_flight(&deferred);
        drop(first);
        drop(second);
        let engine = thread::spawn(move || first_fence.fire());
        let reclaimer = {
            let deferred = Arc::clone(&deferred);
            thread::spawn(move || deferred.reclaim())
        };
        let closed = deferred.close(Duration::ZERO);
        engine.join().unwrap();
        let reclaimed = reclaimer.join().unwrap();
        // What never fired is left alone; what fired in time is freed once, by one of the two.
        assert_eq!(
            second_freed.load(Ordering::Acquire),
            0,
            "freed while in flight"
        );
        assert_eq!(
            closed.freed + reclaimed,
            first_freed.load(Ordering::Acquire)
        );
        assert_eq!(
            closed.freed + closed.abandoned + reclaimed,
            2,
            "one was lost"
        );
        drop(second_fence);
    });
}

//! Explores every interleaving of the protocol's small races with loom.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p pinlane-core --lib --release loom_models`

use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use loom::future::block_on;
use loom::sync::atomic::AtomicUsize as LoomUsize;
use loom::thread::{self, JoinHandle};

use super::test_fence::TestFence;
use super::{Completion, DeferredFree, FreeList, InFlight, ReleaseQueue};
use crate::sync::{Arc, Ordering};

/// Runs `work` on another thread.
fn spawn<T: 'static, R: 'static>(
    shared: &Arc<T>,
    work: impl FnOnce(Arc<T>) -> R + 'static,
) -> JoinHandle<R> {
    let shared = Arc::clone(shared);
    thread::spawn(move || work(shared))
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The driver's callback: the fence has fired.
fn complete_elsewhere(
    fence: &TestFence,
    told: Arc<Completion<pinlane_driver::Result<()>>>,
) -> JoinHandle<()> {
    let fence = fence.clone();
    thread::spawn(move || {
        fence.fire();
        wake(told.complete(Ok(())));
    })
}

/// A buffer that counts how often it was freed, and whether its fence had fired by then.
struct ModelBuffer {
    fence: TestFence,
    freed: Freed,
}

/// Not loom's `Arc`, because loom would report what an abandoned buffer keeps as a leak.
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
        let idle = std::iter::from_fn(|| slots.claim(|| Err(())).ok()).count();
        assert_eq!(idle, made.load(Ordering::Acquire), "a slot was lost");
    });
}

#[test]
fn completion_wakes_the_task_that_polls() {
    loom::model(|| {
        let told = Arc::new(Completion::new());
        let callback = spawn(&told, |told| wake(told.complete(7)));
        // Loom reports a deadlock if the wake-up is lost.
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
                callback = Some(complete_elsewhere(&fence, told));
                Ok(())
            })
        }));
        let freed_early = freed.load(Ordering::Acquire);
        assert_eq!(freed_early, 0, "the buffer comes back unfreed");
        assert!(landed.is_ok());
        drop(landed);
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
            callback = Some(complete_elsewhere(&fence, told));
            Ok(())
        });
        match polled {
            Poll::Ready(landed) => drop(landed),
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
        let reclaimer = spawn(&deferred, |deferred| deferred.reclaim());
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
        let reclaimer = spawn(&deferred, |deferred| deferred.reclaim());
        let closed = deferred.close(Duration::ZERO);
        engine.join().unwrap();
        let reclaimed = reclaimer.join().unwrap();
        // A payload whose fence never fired is leaked; one that fired in time is freed once, by one of the
        // two.
        let [first, second] =
            [first_freed, second_freed].map(|freed| freed.load(Ordering::Acquire));
        assert_eq!(second, 0, "freed while in flight");
        assert_eq!(closed.freed + reclaimed, first);
        assert_eq!(first + closed.abandoned, 2, "one was lost");
        drop(second_fence);
    });
}

/// Several threads fill one slot.
mod slot_filling {
    use loom::cell::UnsafeCell;

    use super::super::{Claim, SharedSlot};
    use super::spawn;
    use crate::sync::{Arc, AtomicUsize, Ordering};

    /// Cells that units write and the last claim reads. Loom reports every possible race.
    struct Cells {
        ready: u32,
        units: [UnsafeCell<u32>; 2],
    }

    // SAFETY: this is what the models check; loom checks every access.
    unsafe impl Sync for Cells {}

    fn cells() -> Cells {
        Cells {
            ready: 1,
            units: [UnsafeCell::new(0), UnsafeCell::new(0)],
        }
    }

    fn work(claim: &Claim<&SharedSlot<Cells>>) {
        let cells = claim.buffer();
        for unit in claim.units() {
            cells.units[unit].with_mut(|cell| {
                // SAFETY: loom checks that nothing else accesses it.
                unsafe { *cell += cells.ready };
            });
        }
    }

    fn check(cells: &Cells) {
        for cell in &cells.units {
            // SAFETY: loom checks that nothing writes to it at the same time.
            assert_eq!(cell.with(|cell| unsafe { *cell }), 1, "every unit once");
        }
    }

    /// Claims, opens or waits, works, finishes. Returns whether it got the buffer.
    fn lane(slot: &SharedSlot<Cells>, at_most: usize) -> usize {
        let mut taken = 0;
        while let Some(claim) = slot.claim(at_most) {
            if claim.must_open() {
                claim.open(cells());
            } else {
                assert!(claim.wait_until_open(|| false));
            }
            work(&claim);
            if let Some(cells) = claim.finish() {
                check(&cells);
                taken += 1;
            }
        }
        taken
    }

    #[test]
    fn claims_see_what_open_wrote_and_the_last_sees_what_claims_wrote() {
        for at_most in [1, 2] {
            loom::model(move || {
                let slot = Arc::new(SharedSlot::unopened(2));
                let other = spawn(&slot, move |slot| lane(&slot, at_most));
                let taken = lane(&slot, at_most) + other.join().unwrap();
                assert_eq!(taken, 1, "one claim gets the buffer");
                assert!(slot.claim(1).is_none());
            });
        }
    }

    #[test]
    fn a_dropped_claim_keeps_the_buffer_from_all() {
        loom::model(|| {
            let slot = Arc::new(SharedSlot::unopened(2));
            let other = spawn(&slot, |slot| {
                let claim = slot.claim(1).expect("one unit each");
                if claim.must_open() {
                    claim.open(cells());
                }
                drop(claim);
            });
            let claim = slot.claim(1).expect("one unit each");
            if claim.must_open() {
                claim.open(cells());
            } else {
                assert!(claim.wait_until_open(|| false));
            }
            work(&claim);
            assert!(claim.finish().is_none());
            other.join().unwrap();
            let slot = Arc::try_unwrap(slot).ok().expect("the other is gone");
            assert!(slot.into_inner().is_some());
        });
    }

    #[test]
    fn a_claim_that_never_opens_leaves_no_thread_waiting() {
        loom::model(|| {
            let shared = (SharedSlot::<Cells>::unopened(2), AtomicUsize::new(0));
            let shared = Arc::new(shared);
            let lane = |shared: Arc<(SharedSlot<Cells>, AtomicUsize)>| {
                let (slot, stopped) = &*shared;
                let claim = slot.claim(1).expect("one unit each");
                if claim.must_open() {
                    stopped.store(1, Ordering::Release);
                } else {
                    assert!(!claim.wait_until_open(|| stopped.load(Ordering::Acquire) == 1));
                }
            };
            let other = spawn(&shared, lane);
            lane(shared);
            other.join().unwrap();
        });
    }
}

/// A value with the number of the last wait that had begun when it was queued.
struct QueuedAfter {
    waits: Arc<LoomUsize>,
    queued_at: usize,
    freed: Freed,
}

impl Drop for QueuedAfter {
    fn drop(&mut self) {
        let waits = self.waits.load(Ordering::Acquire);
        assert!(waits > self.queued_at, "no wait began after it was queued");
        self.freed.fetch_add(1, Ordering::AcqRel);
    }
}

#[test]
fn what_is_queued_during_a_wait_stays_for_the_next() {
    loom::model(|| {
        let queue = Arc::new(ReleaseQueue::new());
        let (waits, freed) = (Arc::new(LoomUsize::new(0)), Freed::new(LoomUsize::new(0)));
        let release = |queue: &ReleaseQueue<QueuedAfter>, waits: &LoomUsize| {
            queue.release(|| {
                waits.fetch_add(1, Ordering::AcqRel);
                true
            })
        };
        let counter = Arc::clone(&waits);
        let other = spawn(&queue, move |queue| release(&queue, &counter));
        for _ in 0..2 {
            queue.push(QueuedAfter {
                queued_at: waits.load(Ordering::Acquire),
                waits: Arc::clone(&waits),
                freed: Freed::clone(&freed),
            });
        }
        release(&queue, &waits);
        assert_eq!(
            freed.load(Ordering::Acquire),
            2,
            "gone when a release returns"
        );
        other.join().unwrap();
    });
}

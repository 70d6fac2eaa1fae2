//! Work is done once on any number of threads, and panics reach the caller.

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{HelperPool, Readiness, run};
use crate::sync::lock;

#[test]
fn everything_is_done_once_and_no_helper_is_left_inside() {
    for _ in 0..if cfg!(miri) { 5 } else { 200 } {
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        run(3, &|ticket| {
            while ticket.is_valid() && next.fetch_add(1, Ordering::Relaxed) < 100 {
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
        // A helper whose ticket has expired leaves before its next claim.
        assert!(done.load(Ordering::Relaxed) == 100);
    }
}

#[test]
fn many_callers_at_once_all_finish() {
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..if cfg!(miri) { 2 } else { 50 } {
                    let sum = AtomicUsize::new(0);
                    let next = AtomicUsize::new(0);
                    run(4, &|ticket| {
                        while ticket.is_valid() {
                            let item = next.fetch_add(1, Ordering::Relaxed);
                            if item >= 64 {
                                return;
                            }
                            sum.fetch_add(item, Ordering::Relaxed);
                        }
                    });
                    assert_eq!(sum.load(Ordering::Relaxed), 63 * 64 / 2);
                }
            });
        }
    });
}

#[test]
fn panics_of_helpers_and_of_the_caller_reach_the_caller() {
    let caught = catch_unwind(|| run(2, &|_| panic!("on purpose")));
    assert!(caught.is_err());
    // The helpers survive.
    let done = AtomicUsize::new(0);
    run(2, &|_| {
        done.fetch_add(1, Ordering::Relaxed);
    });
    assert!(done.load(Ordering::Relaxed) >= 1);
}

/// A program whose copies are all too small to wake sleeping helpers would never have any.
#[test]
#[cfg_attr(miri, ignore = "its threads never end")]
fn helpers_start_for_somebody_who_asks_often() {
    let pool: &'static HelperPool = Box::leak(Box::new(HelperPool::new(4)));
    assert_eq!(pool.readiness(), Readiness::FastAsleep, "none ever worked");
    assert_eq!(lock(&pool.state).threads, 0, "asked once");
    // On a busy machine two questions may be far apart, but not always.
    while lock(&pool.state).threads == 0 {
        pool.readiness();
    }
    assert_eq!(lock(&pool.state).threads, 3, "one CPU is the caller's");
}

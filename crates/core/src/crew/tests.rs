//! Work is done once, by however many, and panics come out.

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::together;

#[test]
fn everything_is_done_once_and_nobody_is_inside_afterwards() {
    for _ in 0..if cfg!(miri) { 5 } else { 200 } {
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        together(3, &|seat| {
            while seat.may_stay() && next.fetch_add(1, Ordering::Relaxed) < 100 {
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
        // Those who left early gave their claim up only after it was refused.
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
                    together(4, &|seat| {
                        while seat.may_stay() {
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
fn a_panic_of_a_helper_or_of_the_caller_reaches_the_caller() {
    let caught = catch_unwind(|| together(2, &|_| panic!("on purpose")));
    assert!(caught.is_err());
    // The crew goes on.
    let done = AtomicUsize::new(0);
    together(2, &|_| {
        done.fetch_add(1, Ordering::Relaxed);
    });
    assert!(done.load(Ordering::Relaxed) >= 1);
}

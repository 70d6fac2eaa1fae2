//! A driver that panics in the middle of a copy: the panic reaches the caller, nothing hangs, nothing
//! is freed in flight, and later copies of other buffers work.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pinlane_driver::Call;

use super::failures::{COPIES, Copy};
use pinlane_testing::must_return;
use pinlane_testing::{CHUNK_BYTES, Spring, Trap, misuse, pattern, set_up, small};

/// Whether the driver panicked, and the misuse that the simulator found.
fn panic_once(copy: Copy, call: Call, at: u64, lanes: usize) -> (bool, Vec<String>) {
    let sim = pinlane_testing::sim();
    let (device, trap) = Trap::under(&sim);
    set_up(&device, lanes, 4);
    let stream = device.stream().unwrap();
    trap.set(call, at, Spring::Panic);
    let caught = catch_unwind(AssertUnwindSafe(|| copy(&device, &stream)));
    let sprung = trap.disarm() > 0;
    assert_eq!(caught.is_err(), sprung, "the panic reaches the caller");
    copy(&device, &stream).expect("the next copy works");
    drop((stream, device));
    (sprung, misuse(&sim))
}

/// Every kind of copy with a panic in each of the first calls of a kind, on one lane and on several.
fn panic_in(call: Call) {
    let mut sprung = 0;
    for lanes in [1, 4] {
        for (name, copy) in COPIES {
            sprung += must_return(move || {
                let mut sprung = 0;
                for at in 0..12 {
                    let (struck, wrong) = panic_once(copy, call, at, lanes);
                    assert_eq!(wrong, [""; 0], "{name}, {call:?} {at}, {lanes} lanes");
                    if !struck {
                        break; // the copy makes no further such call
                    }
                    sprung += 1;
                }
                sprung
            });
        }
    }
    assert!(sprung > 10, "only {sprung} panics");
}

#[test]
fn panic_in_a_copy() {
    panic_in(Call::CopyAsync);
}

#[test]
fn panic_in_a_launch() {
    panic_in(Call::Launch);
}

#[test]
fn panic_in_event_create() {
    panic_in(Call::EventCreate);
}

#[test]
fn panic_in_event_query() {
    panic_in(Call::EventQuery);
}

#[test]
fn panic_in_event_record() {
    panic_in(Call::EventRecord);
}

#[test]
fn panic_in_event_synchronize() {
    panic_in(Call::EventSynchronize);
}

#[test]
fn more_panics_than_the_ring_has_slots() {
    must_return(|| {
        let sim = pinlane_testing::sim();
        let (device, trap) = Trap::under(&sim);
        set_up(&device, 1, 2);
        let stream = device.stream().unwrap();
        let source = pattern(3 * CHUNK_BYTES, 1);
        for _ in 0..3 {
            let mut target = device.alloc::<u8>(source.len()).unwrap();
            trap.set(Call::CopyAsync, 0, Spring::Panic);
            let copy = AssertUnwindSafe(|| stream.copy_to_device(&source, &mut target));
            assert!(catch_unwind(copy).is_err());
            trap.disarm();
        }
        let mut target = device.alloc::<u8>(source.len()).unwrap();
        stream.copy_to_device(&source, &mut target).unwrap();
        assert!(stream.copy_to_vec(&target).unwrap() == source);
    });
}

#[test]
fn a_panic_of_the_caller_leaves_the_express_lane_usable() {
    let (sim, device, stream) = small(2, 2);
    let source = pattern(3 * CHUNK_BYTES, 1);
    let mut target = device.alloc::<u8>(source.len()).unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let places = target.whole_mut().chunks(1000).inspect(|place| {
            assert!(place.len() == 1000, "on purpose, at the last piece");
        });
        stream.upload_many(source.chunks(1000).zip(places))
    }));
    assert!(panicked.is_err());
    stream.copy_to_device(&source, &mut target).unwrap();
    assert!(stream.copy_to_vec(&target).unwrap() == source);
    drop((stream, target, device));
    pinlane_testing::assert_clean(&sim);
}

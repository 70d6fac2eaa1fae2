//! The default stream of a thread, on the simulated GPU under libcuda's own names: the same number is
//! another stream on every thread.
//!
//! libcuda is loaded when it is first used, so each test runs itself again in a process of its own that finds
//! the simulated one.

use std::thread;

use pinlane::driver::{CopyOp, Place, StreamHandle};
use pinlane::{Device, Error, Stream};
use pinlane_cuda::Cuda;
use pinlane_simcuda::testing::{Stage, complaints, in_child};

/// libcuda's number for the calling thread's default stream.
const PER_THREAD: u64 = 2;

/// Several chunks of the express lane.
const BYTES: usize = 3 << 20;

const SEEDS: std::ops::Range<u64> = 0..6;

/// Runs `body` in processes that find the simulated libcuda, and sees that it misused nothing.
#[track_caller]
fn in_any_order(test: &str, body: impl Fn()) {
    for seed in SEEDS {
        let stage = || Stage::new().expect("the simulated libcuda is built beside the test");
        let seed = seed.to_string();
        if let Some(report) = in_child(stage, test, &[("SEED", &seed)], &body) {
            assert!(!report.is_empty(), "the simulated libcuda was not used");
            assert_eq!(complaints(&report), [""; 0], "seed {seed}");
        }
    }
}

fn device() -> Device {
    let cuda = Cuda::load().expect("the simulated libcuda loads");
    let device = Device::open(&cuda, 0).expect("it has a device");
    let lanes = device.express_config().lanes(3).chunk_bytes(64 << 10);
    device
        .set_express_config(lanes)
        .expect("a valid configuration");
    device
}

fn stream_of_this_thread(device: &Device) -> Stream {
    // SAFETY: it always exists.
    unsafe { Stream::from_raw(device, PER_THREAD) }
}

#[test]
fn large_copies_are_in_order_with_other_work_of_the_thread() {
    in_any_order(
        "large_copies_are_in_order_with_other_work_of_the_thread",
        || {
            let device = device();
            let stream = stream_of_this_thread(&device);
            let mut buffer = device.alloc::<u8>(BYTES).unwrap();
            let copy = device.alloc::<u8>(BYTES).unwrap();
            let source: Vec<u8> = (0..BYTES).map(|i| (i % 251) as u8).collect();
            // Another library's work on the same stream, which Pinlane does not see.
            let there = buffer.device_ptr();
            let copied = CopyOp {
                source: Place::Device(there),
                target: Place::Device(copy.device_ptr()),
                bytes: BYTES,
            };
            // SAFETY: the stream always exists, and both buffers are dropped once it is idle.
            let (driver, handle) = unsafe {
                let handle = StreamHandle::from_raw(PER_THREAD);
                (pinlane::raw::driver(&device), handle)
            };
            // SAFETY: as above.
            unsafe { driver.memset_async(there, 0xee, BYTES, handle) }.unwrap();
            stream.copy_to_device(&source, &mut buffer).unwrap();
            // SAFETY: as above.
            unsafe { driver.copy_async(copied, handle) }.unwrap();
            stream.synchronize().unwrap();
            let other = device.stream().unwrap();
            assert_eq!(other.copy_to_vec(&buffer).unwrap(), source);
            assert_eq!(other.copy_to_vec(&copy).unwrap(), source);
            let mut back = vec![0; BYTES];
            stream.copy_to_host(&buffer, &mut back).unwrap();
            assert_eq!(back, source);
        },
    );
}

#[test]
fn another_thread_cannot_use_it() {
    in_any_order("another_thread_cannot_use_it", || {
        let device = device();
        let stream = stream_of_this_thread(&device);
        let mut buffer = device.alloc::<u8>(BYTES).unwrap();
        let event = device.event().unwrap();
        let on_another_thread = || {
            let refused = |result: pinlane::Result<()>| assert_eq!(result, Err(Error::WrongThread));
            refused(stream.synchronize());
            refused(stream.is_idle().map(drop));
            refused(stream.record(&event));
            refused(stream.wait(&event));
            refused(stream.fill_bytes(&mut buffer, 1));
            for bytes in [1, 100_000, BYTES] {
                refused(stream.copy_to_device(&vec![1; bytes], buffer.range_mut(..bytes)));
                refused(stream.copy_to_host(buffer.range(..bytes), &mut vec![1; bytes]));
            }
            let pinned = device.pinned_from(&[1u8; 16]).unwrap();
            let failed = stream.upload(pinned, buffer.range_mut(..16)).unwrap_err();
            assert!(failed.buffer.is_some(), "it comes back");
            refused(Err(failed.error));
        };
        thread::scope(|threads| threads.spawn(on_another_thread).join().unwrap());
        // Nothing was lost by that.
        stream.copy_to_device(&vec![9; BYTES], &mut buffer).unwrap();
        assert_eq!(stream.copy_to_vec(&buffer).unwrap(), vec![9; BYTES]);
        drop((stream, buffer));
        pinlane_testing::assert_empty(&device);
    });
}

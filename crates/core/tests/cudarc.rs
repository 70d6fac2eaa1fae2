//! Memory and streams shared with cudarc, on the simulated GPU under libcuda's own names.
//!
//! Both libraries load libcuda when they are first used, so each test runs itself again in a
//! process of its own that finds the simulated one.
#![cfg(feature = "cudarc")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DriverError, PinnedHostSlice, sys};
use pinlane::{Device, DeviceBuf, Error};
use pinlane_cuda::Cuda;
use pinlane_driver::ErrorKind;
use pinlane_simcuda::testing::{Stage, complaints, in_child};

const LEN: usize = 1 << 16;
const BYTES: u64 = LEN as u64 * 4;

/// Schedules that every test of order runs under: the plain one, then adversarial ones.
const SEEDS: std::ops::Range<u64> = 0..4;

/// Run `body` in a process that finds the simulated libcuda, and see that it misused nothing.
#[track_caller]
fn on_simulated_gpu(test: &str, settings: &[(&str, &str)], body: impl FnOnce()) {
    let stage = || Stage::new().expect("the simulated libcuda is built beside the test");
    if let Some(report) = in_child(stage, test, settings, body) {
        assert!(!report.is_empty(), "the simulated libcuda was not used");
        assert_eq!(complaints(&report), [""; 0], "{settings:?}");
    }
}

/// The same under each schedule.
#[track_caller]
fn in_any_order(test: &str, body: impl Fn()) {
    on_simulated_gpu(test, &[], &body);
    for seed in SEEDS {
        let seed = seed.to_string();
        on_simulated_gpu(test, &[("SEED", &seed)], &body);
    }
}

/// A device and cudarc's context of it.
fn both() -> (Device, Arc<CudaContext>) {
    let cuda = Cuda::load().expect("the simulated libcuda loads");
    let device = Device::open(&cuda, 0).expect("it has a device");
    (device, CudaContext::new(0).expect("the same device"))
}

fn numbers() -> Vec<u32> {
    (0..LEN as u32).collect()
}

/// Copied to the host it takes longer than the host takes to submit the rest.
const DELAY_BYTES: usize = 4 << 20;

/// Gives the stream something to do, so that what comes next on it is late.
struct Delay {
    stream: Arc<CudaStream>,
    memory: (CudaSlice<u8>, PinnedHostSlice<u8>),
}

impl Delay {
    fn new(stream: &Arc<CudaStream>) -> Self {
        let source = stream.alloc_zeros::<u8>(DELAY_BYTES).unwrap();
        // SAFETY: it is written by the device, and never read.
        let mut target = unsafe { stream.context().alloc_pinned(DELAY_BYTES) }.unwrap();
        stream.memcpy_dtoh(&source, &mut target).unwrap();
        Self {
            stream: Arc::clone(stream),
            memory: (source, target),
        }
    }

    fn end(self) {
        self.stream.synchronize().unwrap();
        drop(self.memory);
    }
}

/// cudarc allocates on `home` and writes on `writer`, we read and write, cudarc reads on `reader`:
/// each sees what came before.
fn there_and_back(device: &Device, [home, writer, reader]: [&Arc<CudaStream>; 3]) {
    let (ours, seen) = (
        device.stream().unwrap(),
        device.pinned::<u32>(LEN / 2).unwrap(),
    );
    let written = device.pinned_from(&numbers()[..LEN / 2]).unwrap();
    let slow = device.alloc::<u8>(DELAY_BYTES).unwrap();
    let slow_target = device.pinned::<u8>(DELAY_BYTES).unwrap();
    let mut slice = home.clone_htod(&vec![7u32; LEN]).unwrap();
    // Nothing slow happens from here on: the device is still at the delay when all is submitted.
    let delay = Delay::new(writer);
    writer.memset_zeros(&mut slice).unwrap();

    let mut buffer = DeviceBuf::from_cudarc(device, slice).unwrap();
    assert_eq!(buffer.len(), LEN);
    assert_eq!(device.stats().device_bytes, BYTES + DELAY_BYTES as u64);
    let (front, back) = (..LEN / 2, LEN / 2..);
    let written = ours.upload(written, buffer.range_mut(front)).unwrap();
    let seen = ours.download(buffer.range(back.clone()), seen).unwrap();
    let slow_copy = ours.download(&slow, slow_target).unwrap();
    ours.fill_bytes(buffer.range_mut(back.clone()), 0xff)
        .unwrap();

    let slice = buffer.into_cudarc().unwrap();
    assert_eq!(device.stats().device_bytes, DELAY_BYTES as u64);
    let read = reader.clone_dtoh(&slice).unwrap();
    assert_eq!(read[front], numbers()[front]);
    assert_eq!(read[back], vec![u32::MAX; LEN / 2]);
    assert_eq!(seen.wait().unwrap()[..], vec![0; LEN / 2]);
    assert_eq!(written.wait().unwrap()[..], numbers()[front]);
    drop((slice, slow_copy.wait().unwrap()));
    delay.end();
}

#[test]
fn a_slice_goes_over_and_back() {
    in_any_order("a_slice_goes_over_and_back", || {
        let (device, context) = both();
        let streams = [(); 3].map(|()| context.new_stream().unwrap());
        there_and_back(&device, streams.each_ref());
        pinlane_testing::assert_empty(&device);
    });
}

#[test]
fn order_holds_where_cudarc_notes_no_uses() {
    in_any_order("order_holds_where_cudarc_notes_no_uses", || {
        let (device, context) = both();
        let default = context.default_stream();
        assert!(!context.is_managing_stream_synchronization());
        there_and_back(&device, [&default; 3]);
        let per_thread = context.per_thread_stream();
        there_and_back(&device, [&per_thread; 3]);
        pinlane_testing::assert_empty(&device);
    });
}

#[test]
fn a_dropped_buffer_goes_back_behind_its_uses() {
    in_any_order("a_dropped_buffer_goes_back_behind_its_uses", || {
        let (device, context) = both();
        let (ours, theirs) = (device.stream().unwrap(), context.new_stream().unwrap());
        let slice = theirs.alloc_zeros::<u32>(LEN).unwrap();
        let mut buffer = DeviceBuf::from_cudarc(&device, slice).unwrap();
        let pinned = device.pinned_from(&numbers()).unwrap();
        let upload = ours.upload(pinned, &mut buffer).unwrap();
        drop(buffer);
        drop(upload.wait().unwrap());
        device.synchronize().unwrap();
        pinlane_testing::assert_empty(&device);
        context.check_err().unwrap();
    });
}

#[test]
fn lent_memory_is_ordered_both_ways() {
    in_any_order("lent_memory_is_ordered_both_ways", || {
        let (device, context) = both();
        let (ours, theirs) = (device.stream().unwrap(), context.new_stream().unwrap());
        let reader = context.new_stream().unwrap();
        let pinned = device.pinned_from(&numbers()[..LEN / 2]).unwrap();
        let mut slice = theirs.clone_htod(&vec![7u32; LEN]).unwrap();
        let delay = Delay::new(&theirs);
        theirs.memset_zeros(&mut slice).unwrap();
        let transfer = device
            .with_cudarc(slice.slice_mut(LEN / 4..3 * LEN / 4), |target| {
                assert_eq!(device.stats().device_bytes, BYTES / 2);
                Ok(ours.upload(pinned, target)?)
            })
            .unwrap();
        assert_eq!(device.stats().device_bytes, 0);
        let read = reader.clone_dtoh(&slice).unwrap();
        assert!(read[..LEN / 4].iter().all(|&value| value == 0));
        assert_eq!(read[LEN / 4..3 * LEN / 4], numbers()[..LEN / 2]);
        assert!(read[3 * LEN / 4..].iter().all(|&value| value == 0));
        drop(slice);
        drop(transfer.wait().unwrap());
        delay.end();
        pinlane_testing::assert_empty(&device);
    });
}

#[test]
fn lent_memory_comes_back_from_work_that_panics_or_fails() {
    in_any_order(
        "lent_memory_comes_back_from_work_that_panics_or_fails",
        || {
            let (device, context) = both();
            let (ours, theirs) = (device.stream().unwrap(), context.new_stream().unwrap());
            let mut slice = theirs.alloc_zeros::<u32>(LEN).unwrap();
            let panic = catch_unwind(AssertUnwindSafe(|| {
                device.with_cudarc(slice.as_view_mut(), |target| -> pinlane::Result<()> {
                    ours.fill_bytes(target, 0xff)?;
                    panic!("on purpose")
                })
            }));
            assert_eq!(
                *panic.unwrap_err().downcast::<&str>().unwrap(),
                "on purpose"
            );
            assert_eq!(theirs.clone_dtoh(&slice).unwrap(), vec![u32::MAX; LEN]);
            let failed = device.with_cudarc(slice.as_view_mut(), |target| {
                ours.fill_bytes(target, 1)?;
                Err::<(), _>(Error::NotMapped)
            });
            assert_eq!(failed, Err(Error::NotMapped));
            assert_eq!(theirs.clone_dtoh(&slice).unwrap(), vec![0x0101_0101; LEN]);
            pinlane_testing::assert_empty(&device);
        },
    );
}

#[test]
fn memory_of_another_device_is_refused() {
    let two = [("DEVICES", "2")];
    on_simulated_gpu("memory_of_another_device_is_refused", &two, || {
        let (first, _context) = both();
        let elsewhere = CudaContext::new(1).unwrap().default_stream();
        let slice = elsewhere.alloc_zeros::<u32>(LEN).unwrap();
        let refused = DeviceBuf::from_cudarc(&first, slice).unwrap_err();
        assert_eq!(refused.error, Error::WrongDevice);
        let mut slice = refused.buffer.expect("it comes back");
        let refused = first.with_cudarc(slice.as_view_mut(), |_| Ok(()));
        assert_eq!(refused, Err(Error::WrongDevice));
        // SAFETY: it is refused, so nothing can use the stream.
        let refused = unsafe { first.stream().unwrap().as_cudarc(elsewhere.context()) };
        assert_eq!(refused.unwrap_err(), Error::WrongDevice);
        pinlane_testing::assert_empty(&first);
    });
}

#[test]
fn a_device_without_libcuda_is_refused() {
    on_simulated_gpu("a_device_without_libcuda_is_refused", &[], || {
        let (_, context) = both();
        let profile = pinlane_model::Profile::builtin("pcie3-x16").unwrap();
        let simulated = Device::open(&pinlane_sim::Sim::new(profile), 0).unwrap();
        let slice = context.default_stream().alloc_zeros::<u32>(LEN).unwrap();
        let refused = DeviceBuf::from_cudarc(&simulated, slice).unwrap_err();
        assert_eq!(refused.error, Error::WrongDevice);
    });
}

#[test]
fn memory_of_our_own_stays_ours() {
    on_simulated_gpu("memory_of_our_own_stays_ours", &[], || {
        let (device, _context) = both();
        let buffer = device.alloc::<u32>(LEN).unwrap();
        let refused = buffer.into_cudarc().unwrap_err();
        assert_eq!(refused.error, Error::NotFromCudarc);
        assert_eq!(device.stats().device_bytes, BYTES);
        drop(refused.buffer.expect("it comes back"));
        pinlane_testing::assert_empty(&device);
    });
}

#[test]
fn an_error_that_cudarc_kept_is_returned_once() {
    on_simulated_gpu("an_error_that_cudarc_kept_is_returned_once", &[], || {
        let (device, context) = both();
        let theirs = context.new_stream().unwrap();
        let slice = theirs.alloc_zeros::<u32>(LEN).unwrap();
        let kept = DriverError(sys::CUresult::CUDA_ERROR_NOT_PERMITTED);
        context.record_err(Err::<(), _>(kept));
        let refused = DeviceBuf::from_cudarc(&device, slice).unwrap_err();
        let code = kept.0 as u32;
        assert!(
            matches!(&refused.error, Error::Driver(error) if error.kind == ErrorKind::Other { code })
        );
        let slice = refused.buffer.expect("it comes back");
        DeviceBuf::from_cudarc(&device, slice).unwrap();
    });
}

#[test]
fn both_use_one_stream() {
    in_any_order("both_use_one_stream", || {
        let (device, context) = both();
        let ours = device.stream().unwrap();
        // SAFETY: `ours` is dropped last, and nothing is captured or shared with other streams.
        let theirs = unsafe { ours.as_cudarc(&context) }.unwrap();
        assert_eq!(
            theirs.cu_stream().addr() as u64,
            pinlane::raw::stream_handle(&ours)
        );
        let mut slice = theirs.alloc_zeros::<u32>(LEN).unwrap();
        let pinned = device.pinned_from(&numbers()).unwrap();
        let transfer = device
            .with_cudarc(slice.as_view_mut(), |target| {
                Ok(ours.upload(pinned, target)?)
            })
            .unwrap();
        assert_eq!(theirs.clone_dtoh(&slice).unwrap(), numbers());
        drop((slice, theirs));
        drop((transfer.wait().unwrap(), ours));
    });
}

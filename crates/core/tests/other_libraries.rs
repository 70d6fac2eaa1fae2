//! Streams and device memory of another library: here, of the driver itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pinlane::driver::{CopyOp, Driver, Place, StreamFlags, StreamHandle};
use pinlane::interop::LentBuf;
use pinlane::{Device, DeviceBuf, DevicePtr, Error, ErrorKind, Stream};
use pinlane_sim::Sim;

const BYTES: usize = 1 << 16;
const SEEDS: std::ops::Range<u64> = 0..20;

/// Another library: it calls the driver directly, on a stream of its own.
struct Library {
    driver: Arc<dyn Driver>,
    stream: StreamHandle,
    memory: DevicePtr,
}

impl Library {
    fn new(sim: &Sim) -> Self {
        let driver = sim.driver();
        let flags = StreamFlags {
            non_blocking: true,
            priority: 0,
        };
        Self {
            stream: driver.stream_create(flags).unwrap(),
            memory: driver.device_alloc(BYTES).unwrap(),
            driver,
        }
    }

    fn fill(&self, value: u8) {
        // SAFETY: its own memory and stream.
        let filled = unsafe {
            self.driver
                .memset_async(self.memory, value, BYTES, self.stream)
        };
        filled.unwrap();
    }

    /// Reads its memory behind everything on its stream.
    fn read(&self) -> Vec<u8> {
        let mut bytes = vec![0; BYTES];
        let copy = CopyOp {
            source: Place::Device(self.memory),
            target: Place::Host(std::ptr::NonNull::from(&mut bytes[0])),
            bytes: BYTES,
        };
        // SAFETY: both places hold as many bytes until the stream is idle.
        unsafe {
            self.driver.copy_async(copy, self.stream).unwrap();
            self.driver.stream_synchronize(self.stream).unwrap();
        }
        bytes
    }

    fn stream_of(&self, device: &Device) -> Stream {
        // SAFETY: it outlives the device in these tests.
        unsafe { Stream::from_raw(device, self.stream.raw()) }
    }

    fn lend(&self, lender: &Stream) -> LentBuf<u8> {
        // SAFETY: its own memory, which it uses on this stream, and not while it is lent.
        unsafe { LentBuf::new(lender, self.memory, BYTES) }.unwrap()
    }

    fn close(self) {
        // SAFETY: nothing uses them any more.
        unsafe {
            self.driver.device_free(self.memory).unwrap();
            self.driver.stream_destroy(self.stream).unwrap();
        }
    }
}

/// Runs with the plain schedule and with adversarial ones; nothing is misused, nothing is left.
fn in_any_order(test: impl Fn(&Sim, &Library)) {
    let sims = SEEDS.map(pinlane_testing::seeded);
    for sim in [pinlane_testing::sim()].into_iter().chain(sims) {
        let library = Library::new(&sim);
        test(&sim, &library);
        library.close();
        pinlane_testing::assert_clean(&sim);
    }
}

#[test]
fn work_on_a_foreign_stream_is_in_order_with_its_owners() {
    in_any_order(|sim, library| {
        let device = pinlane_testing::open(sim);
        let stream = library.stream_of(&device);
        let mut buffer = device.alloc::<u8>(BYTES).unwrap();
        let pinned = device.pinned_from(&[1u8; BYTES]).unwrap();
        let sent = stream.upload(pinned, &mut buffer).unwrap();
        // The library copies what was uploaded, without any wait.
        let copy = CopyOp {
            source: Place::Device(buffer.device_ptr()),
            target: Place::Device(library.memory),
            bytes: BYTES,
        };
        // SAFETY: both hold as many bytes, and `buffer` is dropped later.
        unsafe { library.driver.copy_async(copy, library.stream) }.unwrap();
        assert_eq!(library.read(), [1; BYTES]);
        sent.wait().unwrap();
        stream.copy_to_device(&[2; BYTES], &mut buffer).unwrap();
        assert_eq!(stream.copy_to_vec(&buffer).unwrap(), [2; BYTES]);
    });
}

#[test]
fn number_0_is_the_default_stream() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    // SAFETY: the default stream always exists.
    let stream = unsafe { Stream::from_raw(&device, 0) };
    let default = device.default_stream();
    assert_eq!(format!("{stream:?}"), format!("{default:?}"));
}

#[test]
fn a_captured_foreign_stream_is_refused() {
    let sim = pinlane_testing::sim();
    let library = Library::new(&sim);
    let device = pinlane_testing::open(&sim);
    let stream = library.stream_of(&device);
    let mut buffer = device.alloc::<u8>(16).unwrap();
    sim.set_capturing(library.stream, true);
    let error = stream.copy_to_device(&[1; 16], &mut buffer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("captur"), "{error}");
    // SAFETY: refused before it is used.
    let lent = unsafe { LentBuf::<u8>::new(&stream, library.memory, 16) };
    assert!(lent.unwrap_err().to_string().contains("captur"));
    // An event of the capture would pull other streams into it.
    let event = device.event().unwrap();
    for refused in [stream.record(&event), stream.wait(&event)] {
        assert!(refused.unwrap_err().to_string().contains("captur"));
    }
    sim.set_capturing(library.stream, false);
    stream.copy_to_device(&[1; 16], &mut buffer).unwrap();
    drop((event, stream, buffer, device));
    library.close();
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn lent_memory_is_used_behind_its_owners_work_and_before_its_later_work() {
    in_any_order(|sim, library| {
        let device = pinlane_testing::open(sim);
        let (lender, ours) = (library.stream_of(&device), device.stream().unwrap());
        library.fill(7);
        let mut lent = library.lend(&lender);
        let seen = ours.copy_to_vec(lent.whole()).unwrap();
        assert_eq!(seen, [7; BYTES], "what the owner wrote before");
        let front = device.pinned_from(&[1u8; BYTES / 2]).unwrap();
        let sent = ours.upload(front, lent.range_mut(..BYTES / 2)).unwrap();
        lent.give_back().unwrap();
        let found = library.read();
        assert_eq!(found[..BYTES / 2], [1; BYTES / 2], "what was written here");
        assert_eq!(found[BYTES / 2..], [7; BYTES / 2]);
        sent.wait().unwrap();
    });
}

#[test]
fn dropping_returns_lent_memory_too() {
    in_any_order(|sim, library| {
        let device = pinlane_testing::open(sim);
        let (lender, ours) = (library.stream_of(&device), device.stream().unwrap());
        let mut lent = library.lend(&lender);
        let source = device.pinned_from(&[5u8; BYTES]).unwrap();
        let sent = ours.upload(source, lent.whole_mut()).unwrap();
        drop(lent);
        assert_eq!(library.read(), [5; BYTES]);
        sent.wait().unwrap();
        assert_eq!(device.stats().device_bytes, 0, "never freed here");
    });
}

#[test]
fn lent_memory_can_return_to_another_stream() {
    in_any_order(|sim, library| {
        let device = pinlane_testing::open(sim);
        let (lender, ours) = (library.stream_of(&device), device.stream().unwrap());
        let later = device.stream().unwrap();
        let mut lent = library.lend(&lender);
        let source = device.pinned_from(&[5u8; BYTES]).unwrap();
        let sent = ours.upload(source, lent.whole_mut()).unwrap();
        lent.give_back_to(&later).unwrap();
        later.synchronize().unwrap();
        assert!(
            sent.is_done().unwrap(),
            "the other stream has waited for it"
        );
        assert_eq!(library.read(), [5; BYTES], "the lender has, too");
        sent.wait().unwrap();
    });
}

#[test]
fn memory_lent_by_one_device_does_not_return_to_another() {
    let sim = pinlane_testing::sim();
    let library = Library::new(&sim);
    let device = pinlane_testing::open(&sim);
    let other = pinlane_testing::open(&sim).stream().unwrap();
    let lender = library.stream_of(&device);
    let mut lent = library.lend(&lender);
    let ours = device.stream().unwrap();
    ours.copy_to_device(&[3; BYTES], lent.whole_mut()).unwrap();
    assert_eq!(lent.give_back_to(&other), Err(Error::WrongDevice));
    assert_eq!(library.read(), [3; BYTES], "the host has waited instead");
    drop((lender, ours, device, other));
    library.close();
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn our_memory_is_ready_for_a_foreign_stream_and_used_again_after_it() {
    in_any_order(|sim, library| {
        let device = pinlane_testing::open(sim);
        let (theirs, ours) = (library.stream_of(&device), device.stream().unwrap());
        let mut buffer = device.alloc::<u8>(BYTES).unwrap();
        let pinned = device.pinned_from(&[1u8; BYTES]).unwrap();
        let sent = ours.upload(pinned, &mut buffer).unwrap();
        buffer.whole().ready_on(&theirs).unwrap();
        let copy = CopyOp {
            source: Place::Device(buffer.device_ptr()),
            target: Place::Device(library.memory),
            bytes: BYTES,
        };
        // SAFETY: both hold as many bytes; the buffer is used again behind it.
        unsafe { library.driver.copy_async(copy, library.stream) }.unwrap();
        buffer.whole().used_on(&theirs).unwrap();
        ours.fill_bytes(&mut buffer, 2).unwrap();
        // The library writes, and the next reader here sees it.
        let mut whole = buffer.whole_mut();
        whole.ready_on(&theirs).unwrap();
        // SAFETY: as above.
        let half = unsafe {
            let (memory, stream) = (whole.device_ptr(), library.stream);
            library.driver.memset_async(memory, 3, BYTES / 2, stream)
        };
        half.unwrap();
        whole.reborrow().used_on(&theirs).unwrap();
        let found = ours.copy_to_vec(&buffer).unwrap();
        assert_eq!(found[..BYTES / 2], [3; BYTES / 2]);
        assert_eq!(found[BYTES / 2..], [2; BYTES / 2]);
        assert_eq!(library.read(), [1; BYTES]);
        sent.wait().unwrap();
    });
}

/// Frees the library's memory when the buffer is done with it, and counts that.
struct Owner {
    driver: Arc<dyn Driver>,
    memory: DevicePtr,
    freed: Arc<AtomicUsize>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: dropped once, when nothing uses the memory; the simulator would report it otherwise.
        unsafe { self.driver.device_free(self.memory) }.unwrap();
        self.freed.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn taken_memory_is_freed_by_its_owner_after_its_last_use() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let driver = sim.driver();
    let memory = driver.device_alloc(BYTES).unwrap();
    let freed = Arc::new(AtomicUsize::new(0));
    let owner = Owner {
        driver,
        memory,
        freed: Arc::clone(&freed),
    };
    // SAFETY: the owner holds `BYTES` bytes, and nothing else uses them.
    let mut buffer = unsafe { DeviceBuf::<u8>::from_raw(&device, memory, BYTES, owner) }.unwrap();
    assert_eq!(device.stats().device_bytes, BYTES as u64);
    let stream = device.stream().unwrap();
    let source = device.pinned_from(&[3; BYTES]).unwrap();
    sim.hold();
    let sent = stream.upload(source, &mut buffer).unwrap();
    drop(buffer);
    assert_eq!(freed.load(Ordering::Relaxed), 0, "still in flight");
    sim.release();
    sent.wait().unwrap();
    device.reclaim();
    assert_eq!(freed.load(Ordering::Relaxed), 1);
    drop((stream, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn memory_beyond_the_address_space_is_refused() {
    let device = pinlane_testing::open(&pinlane_testing::sim());
    // SAFETY: refused before it is used.
    let buffer = unsafe { DeviceBuf::<u64>::from_raw(&device, DevicePtr(256), usize::MAX, ()) };
    assert!(matches!(buffer, Err(Error::TooLarge { .. })));
}

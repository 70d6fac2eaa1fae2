//! Memory that another library still uses when it is dropped here: the library is the driver itself, on a stream
//! that the device does not know.

use std::ptr::NonNull;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use pinlane::driver::{Call, CopyOp, Driver, Place, StreamFlags, StreamHandle};
use pinlane::{Budget, Device, DevicePtr, Error, ErrorKind, PinnedPool};
use pinlane_sim::{FaultKind, Faults, Sim};
use pinlane_testing::{Spring, Trap};

const BYTES: usize = 1 << 16;
const MIB: usize = 1 << 20;
const SEEDS: std::ops::Range<u64> = 0..20;

/// Another library, with a stream and memory of its own.
struct Library {
    driver: Arc<dyn Driver>,
    stream: StreamHandle,
    memory: DevicePtr,
    bytes: usize,
}

impl Library {
    fn new(sim: &Sim, bytes: usize) -> Self {
        let driver = sim.driver();
        let flags = StreamFlags {
            non_blocking: true,
            priority: 0,
        };
        Self {
            stream: driver.stream_create(flags).unwrap(),
            memory: driver.device_alloc(bytes).unwrap(),
            driver,
            bytes,
        }
    }

    /// Copies into its memory and returns at once.
    fn copy_from(&self, source: Place) {
        let copy = CopyOp {
            source,
            target: Place::Device(self.memory),
            bytes: self.bytes,
        };
        // SAFETY: the test keeps the source until the copy is done, or shows what happens otherwise.
        unsafe { self.driver.copy_async(copy, self.stream) }.unwrap();
    }

    fn copy_from_host(&self, source: &mut [u8]) {
        assert_eq!(source.len(), self.bytes);
        self.copy_from(Place::Host(NonNull::from(&mut source[0])));
    }

    /// Reads its memory behind everything on its stream.
    fn read(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes];
        let copy = CopyOp {
            source: Place::Device(self.memory),
            target: Place::Host(NonNull::from(&mut bytes[0])),
            bytes: self.bytes,
        };
        // SAFETY: both places hold as many bytes until the stream is idle.
        unsafe {
            self.driver.copy_async(copy, self.stream).unwrap();
            self.driver.stream_synchronize(self.stream).unwrap();
        }
        bytes
    }

    fn close(self) {
        // SAFETY: nothing uses them any more.
        unsafe {
            self.driver.device_free(self.memory).unwrap();
            self.driver.stream_destroy(self.stream).unwrap();
        }
    }
}

/// The plain schedule, and adversarial ones.
fn sims() -> impl Iterator<Item = Sim> {
    [pinlane_testing::sim()]
        .into_iter()
        .chain(SEEDS.map(pinlane_testing::seeded))
}

/// Nothing was misused, and nothing is left.
fn close(sim: &Sim, device: Device, library: Library) {
    device.synchronize().unwrap();
    assert_eq!(device.stats().parked, 0);
    drop(device);
    library.close();
    pinlane_testing::assert_clean(sim);
}

/// What the library reads if a buffer is dropped by `release` while the library copies from it, and the next
/// buffer is filled with 9.
fn dropped_in_use(
    sim: &Sim,
    device: &Device,
    release: impl Fn(Box<dyn Send>),
) -> (Library, Vec<u8>) {
    let library = Library::new(sim, BYTES);
    let mut pinned = device.pinned_from(&[1u8; BYTES]).unwrap();
    sim.hold();
    library.copy_from_host(&mut pinned);
    release(Box::new(pinned));
    let mut next = device.pinned::<u8>(BYTES).unwrap();
    next.fill(9);
    sim.release();
    let found = library.read();
    (library, found)
}

#[test]
fn pinned_memory_is_reused_when_others_are_done_with_it() {
    for sim in sims() {
        let device = Device::open(&sim, 0).unwrap();
        let (library, found) =
            dropped_in_use(&sim, &device, |pinned| device.release_when_idle(pinned));
        assert_eq!(found, [1; BYTES]);
        close(&sim, device, library);
    }
}

/// Shows that the test above can fail.
#[test]
fn a_plain_drop_hands_out_memory_that_others_use() {
    let sim = pinlane_testing::sim();
    let device = Device::open(&sim, 0).unwrap();
    let (_, found) = dropped_in_use(&sim, &device, drop);
    assert_eq!(found, [9; BYTES]);
    // The simulator sees it where the memory is freed instead.
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    dropped_in_use(&sim, &device, drop);
    assert!(!pinlane_testing::misuse(&sim).is_empty());
}

#[test]
fn every_kind_of_memory_is_freed_when_others_are_done_with_it() {
    for sim in sims() {
        let device = pinlane_testing::open(&sim);
        let library = Library::new(&sim, BYTES);
        let mut pinned = device.pinned_from(&[1u8; BYTES]).unwrap();
        let mut registered = device.register(vec![2u8; BYTES]).unwrap();
        let mut mapped = device.mapped::<u8>(BYTES).unwrap();
        let mut on_device = device.alloc::<u8>(BYTES).unwrap();
        let stream = device.stream().unwrap();
        let mut ordered = stream.alloc::<u8>(BYTES).unwrap();
        stream.fill_bytes(&mut on_device, 3).unwrap();
        stream.fill_bytes(&mut ordered, 4).unwrap();
        stream.synchronize().unwrap();
        sim.hold();
        library.copy_from_host(&mut pinned);
        library.copy_from_host(&mut registered);
        library.copy_from_host(&mut mapped);
        library.copy_from(Place::Device(on_device.device_ptr()));
        library.copy_from(Place::Device(ordered.device_ptr()));
        device.release_when_idle(pinned);
        device.release_when_idle(registered);
        device.release_when_idle((mapped, on_device));
        device.release_when_idle(Arc::new(ordered));
        assert_eq!(device.stats().parked, 4);
        assert_eq!(device.stats().device_bytes, 2 * BYTES as u64);
        sim.release();
        device.synchronize().unwrap();
        assert_eq!(device.stats().parked, 0);
        pinlane_testing::assert_empty(&device);
        assert_eq!(library.read(), [4; BYTES]);
        drop(stream);
        close(&sim, device, library);
    }
}

#[test]
fn kept_device_memory_is_reused_when_others_are_done_with_it() {
    for sim in sims() {
        let device = pinlane_testing::open(&sim);
        device.keep_device_memory(u64::MAX);
        let library = Library::new(&sim, BYTES);
        let buffer = device.alloc::<u8>(BYTES).unwrap();
        let address = buffer.device_ptr();
        sim.hold();
        library.copy_from(Place::Device(address));
        device.release_when_idle(buffer);
        let other = device.alloc::<u8>(BYTES).unwrap();
        assert_ne!(other.device_ptr(), address, "still in use");
        sim.release();
        device.synchronize().unwrap();
        assert_eq!(device.alloc::<u8>(BYTES).unwrap().device_ptr(), address);
        drop(other);
        close(&sim, device, library);
    }
}

/// `x = empty(…); copy; del x` in a loop, with room for one `x`.
#[test]
fn a_request_over_budget_waits_for_what_is_about_to_be_released() {
    for sim in sims() {
        let budget = Budget::with_limit(6 * MIB as u64);
        let device = Device::with_budget(sim.driver(), &budget);
        // Buffers of up to 4 MiB are kept when they are dropped, and freed for another size.
        for bytes in [5 * MIB, 3 * MIB, 4 * MIB, 5 * MIB, 5 * MIB] {
            let library = Library::new(&sim, bytes);
            let mut pinned = device.pinned::<u8>(bytes).unwrap();
            pinned.fill(7);
            library.copy_from_host(&mut pinned);
            device.release_when_idle(pinned);
            let pool = PinnedPool::new(&device);
            let mut block = pool.take::<u8>(bytes).unwrap();
            block.fill(8);
            library.copy_from_host(&mut block);
            device.release_when_idle((block, pool));
            let mut registered = device.register(vec![9; bytes]).unwrap();
            library.copy_from_host(&mut registered);
            device.release_when_idle(registered);
            assert_eq!(library.read(), vec![9; bytes]);
            library.close();
        }
        close(&sim, device, Library::new(&sim, 1));
    }
}

#[test]
fn a_request_with_a_time_limit_or_without_hope_does_not_wait_for_the_device() {
    let sim = pinlane_testing::sim();
    let budget = Budget::with_limit(MIB as u64);
    let device = Device::with_budget(sim.driver(), &budget);
    let library = Library::new(&sim, MIB);
    let mut pinned = device.pinned::<u8>(MIB).unwrap();
    pinned.fill(1);
    sim.hold();
    library.copy_from_host(&mut pinned);
    device.release_when_idle(pinned);
    let pool = PinnedPool::new(&device);
    let refused = [
        budget.reserve_within(4096, Duration::ZERO).map(drop),
        pool.take_within::<u8>(4096, Duration::ZERO).map(drop),
        device.pinned::<u8>(MIB + 1).map(drop),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(Error::OverBudget { .. })));
    }
    sim.release();
    drop(device.pinned::<u8>(MIB).unwrap());
    drop(pool);
    close(&sim, device, library);
}

#[test]
fn a_full_device_waits_for_what_is_about_to_be_released() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let library = Library::new(&sim, BYTES);
    let stream = device.stream().unwrap();
    let free_bytes = device.memory_info().unwrap().free_bytes as usize;
    let most = free_bytes / 4 * 3;
    for _ in 0..3 {
        let buffer = device.alloc::<u8>(most).unwrap();
        library.copy_from(Place::Device(buffer.device_ptr()));
        device.release_when_idle(buffer);
        let buffer = stream.alloc::<u8>(most).unwrap();
        device.release_when_idle(buffer);
    }
    drop(stream);
    close(&sim, device, library);
}

/// Says when it is dropped.
struct Says(mpsc::Sender<()>);

impl Drop for Says {
    fn drop(&mut self) {
        self.0.send(()).unwrap();
    }
}

#[test]
fn the_last_handle_can_be_dropped_while_others_use_the_memory() {
    let sim = pinlane_testing::sim();
    let library = Library::new(&sim, BYTES);
    let device = pinlane_testing::open(&sim);
    let mut pinned = device.pinned_from(&[1u8; BYTES]).unwrap();
    let address = pinned.as_ptr().expose_provenance() as u64;
    sim.hold();
    library.copy_from_host(&mut pinned);
    let (says, dropped) = mpsc::channel();
    device.release_when_idle((pinned, Says(says)));
    drop(device); // returns, although the copy is stuck
    assert!(dropped.try_recv().is_err());
    assert!(sim.allocation(address).is_some());
    sim.release();
    dropped.recv().unwrap();
    assert!(sim.allocation(address).is_none(), "dropped before");
    assert_eq!(library.read(), [1; BYTES]);
}

#[test]
fn destructors_may_panic_and_ask_for_memory() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("in a destructor");
        }
    }
    struct Allocates(Device);
    impl Drop for Allocates {
        fn drop(&mut self) {
            // Would wait for itself.
            let refused = self.0.pinned::<u8>(MIB);
            assert!(matches!(refused, Err(Error::OverBudget { .. })));
            self.0.synchronize().unwrap();
            self.0.release_when_idle(Box::new(5));
        }
    }
    let sim = pinlane_testing::sim();
    let budget = Budget::with_limit(MIB as u64);
    let device = Device::with_budget(sim.driver(), &budget);
    let pinned = device.pinned::<u8>(MIB).unwrap();
    let (says, dropped) = mpsc::channel();
    let library = Library::new(&sim, 1);
    sim.hold();
    // SAFETY: it fills its own memory.
    unsafe {
        library
            .driver
            .memset_async(library.memory, 1, 1, library.stream)
    }
    .unwrap();
    device.release_when_idle(Panics);
    device.release_when_idle(Allocates(device.clone()));
    device.release_when_idle((pinned, Says(says)));
    sim.release();
    dropped.recv().unwrap();
    while device.stats().parked > 0 {
        device.synchronize().unwrap(); // what a destructor queued comes last
    }
    close(&sim, device, library);
}

#[test]
fn a_wait_that_fails_or_panics_is_tried_again() {
    for spring in [Spring::Fail, Spring::Panic] {
        let sim = pinlane_testing::sim();
        let library = Library::new(&sim, BYTES);
        let (device, trap) = Trap::under(&sim);
        let mut pinned = device.pinned_from(&[1u8; BYTES]).unwrap();
        sim.hold();
        library.copy_from_host(&mut pinned);
        trap.set(Call::Synchronize, 0, spring);
        let (says, dropped) = mpsc::channel();
        device.release_when_idle((pinned, Says(says)));
        while trap.calls().is_empty() {
            std::thread::yield_now();
        }
        assert!(dropped.try_recv().is_err(), "the device may still use it");
        sim.release();
        dropped.recv().unwrap();
        assert_eq!(trap.disarm(), 1);
        let noted = device.take_stray_errors().len();
        assert_eq!(noted, usize::from(spring == Spring::Fail));
        close(&sim, device, library);
    }
}

/// Only in a full run: it takes the 5 seconds that the thread tries.
#[test]
fn what_cannot_be_waited_for_is_leaked_but_the_device_is_closed() {
    if pinlane_testing::skip_slow_test() {
        return;
    }
    let sim = pinlane_testing::sim();
    let budget = Budget::with_limit(1 << 30);
    let (device, trap) = Trap::under(&sim);
    let other = device.limited_to(&budget);
    drop(device);
    trap.refuse_all(Call::Synchronize);
    let pinned = other.pinned::<u8>(BYTES).unwrap();
    let (says, dropped) = mpsc::channel();
    other.release_when_idle((pinned, Says(says)));
    while other.stats().parked > 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    trap.disarm();
    assert!(dropped.try_recv().is_err());
    assert_eq!(budget.in_use_bytes(), BYTES as u64, "it counts for good");
    assert!(pinlane_testing::misuse(&sim).is_empty());
}

#[test]
fn a_forked_child_keeps_what_its_parent_made() {
    let sim = pinlane_testing::sim();
    let library = Library::new(&sim, BYTES);
    let (device, trap) = Trap::under(&sim);
    let mut first = device.pinned_from(&[1u8; BYTES]).unwrap();
    let second = device.pinned_from(&[2u8; BYTES]).unwrap();
    sim.hold();
    library.copy_from_host(&mut first);
    device.release_when_idle(first); // the thread waits, with its locks held
    trap.watch();
    // SAFETY: the child calls nothing that takes a lock of another thread's, and exits.
    let child = unsafe {
        let child = libc::fork();
        if child == 0 {
            device.release_when_idle(second);
            libc::_exit(7);
        }
        child
    };
    let mut status = 0;
    // SAFETY: `status` outlives the call, and the child is ours.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(libc::WEXITSTATUS(status), 7);
    sim.release();
    assert_eq!(library.read(), [1; BYTES]);
    device.release_when_idle(second);
    close(&sim, device, library);
}

#[test]
fn a_lost_device_uses_nothing() {
    let faults = Faults::none().with(FaultKind::LateError, 1000);
    let sim = pinlane_testing::sim_builder().faults(faults).build();
    let device = pinlane_testing::open(&sim);
    let library = Library::new(&sim, BYTES);
    let mut pinned = device.pinned::<u8>(BYTES).unwrap();
    pinned.fill(1);
    sim.hold();
    library.copy_from_host(&mut pinned);
    let (says, dropped) = mpsc::channel();
    device.release_when_idle((pinned, Says(says)));
    sim.release();
    dropped.recv().unwrap();
    let error = device.take_stray_errors().remove(0);
    assert_eq!(error.kind(), ErrorKind::DeviceLost);
    assert!(pinlane_testing::misuse(&sim).is_empty());
}

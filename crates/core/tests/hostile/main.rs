//! Programs that try to break the promises: user code that panics or calls back at the worst
//! moment, drivers that fail or panic in the middle, many threads on one stream.

mod concurrent_readers;
mod panicking_driver;
mod wakers;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use bytemuck::{Pod, Zeroable};
use pinlane::{Builtin, Device, Error, StableMemory, StableMemoryMut};
use pinlane_driver::{Call, ErrorKind, Hook, Intercepted};
use pinlane_sim::Sim;
use pinlane_testing::must_return;

/// Large enough to be in flight for a while.
const LARGE: usize = if cfg!(miri) { 4096 } else { 1 << 20 };

/// Non-leak findings: those that break a promise.
fn misuse(sim: &Sim) -> Vec<String> {
    let findings = sim.finish().into_iter();
    let misuse = findings.filter(|finding| !finding.kind.is_leak());
    misuse.map(|finding| finding.to_string()).collect()
}

/// Fails or panics as told, once it is armed.
struct Trap {
    armed: Arc<AtomicBool>,
    spring: fn(Call, u64) -> pinlane_driver::Result<()>,
    calls: AtomicU64,
}

// SAFETY: none of the errors below is fatal.
unsafe impl Hook for Trap {
    fn before(&self, call: Call) -> pinlane_driver::Result<()> {
        if !self.armed.load(Ordering::Relaxed) {
            return Ok(());
        }
        (self.spring)(call, self.calls.fetch_add(1, Ordering::Relaxed))
    }
}

fn trapped(
    sim: &Sim,
    spring: fn(Call, u64) -> pinlane_driver::Result<()>,
) -> (Device, Arc<AtomicBool>) {
    let armed = Arc::new(AtomicBool::new(false));
    let trap = Trap {
        armed: Arc::clone(&armed),
        spring,
        calls: AtomicU64::new(0),
    };
    let driver = Intercepted::new(sim.driver(), trap);
    let device = Device::from_driver(Arc::new(driver));
    device.keep_pinned_memory(0); // so that the simulator sees what is freed too early
    (device, armed)
}

fn refuse() -> pinlane_driver::Result<()> {
    Err(pinlane_driver::Error::new(
        ErrorKind::Other { code: 77 },
        "trap",
    ))
}

#[test]
fn memory_of_work_that_cannot_be_waited_for_is_not_used_again() {
    let sim = pinlane_testing::sim();
    let (device, armed) = trapped(&sim, |call, _| match call {
        Call::EventRecord | Call::StreamSynchronize | Call::Synchronize => refuse(),
        _ => Ok(()),
    });
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let mut target = device.alloc::<u8>(LARGE).unwrap();
    let source = device.pinned_from(&vec![1; LARGE]).unwrap();
    armed.store(true, Ordering::Relaxed);
    let failed = stream.upload(source, &mut target).map(drop).unwrap_err();
    assert!(failed.buffer.is_none(), "it may still be in flight");
    armed.store(false, Ordering::Relaxed);
    let mut back = vec![0; LARGE];
    assert_eq!(other.copy_to_host(&target, &mut back), Err(Error::Stranded));
    drop((target, stream, other, device));
    assert_eq!(misuse(&sim), [""; 0]);
}

#[test]
fn every_error_of_a_scope_is_told() {
    let sim = pinlane_testing::sim();
    let (device, armed) = trapped(&sim, |call, count| match call {
        Call::EventSynchronize if count % 2 == 0 => refuse(),
        _ => Ok(()),
    });
    let stream = device.stream().unwrap();
    let pinned = device.pinned_from(&[1u8; 64]).unwrap();
    let (mut a, mut b) = (
        device.alloc::<u8>(64).unwrap(),
        device.alloc::<u8>(64).unwrap(),
    );
    let result = device.scope(|scope| {
        scope.upload(&stream, &pinned, &mut a)?;
        scope.upload(&stream, &pinned, &mut b)?;
        armed.store(true, Ordering::Relaxed);
        Ok(())
    });
    armed.store(false, Ordering::Relaxed);
    assert!(matches!(result, Err(Error::Driver(_))));
    assert_eq!(device.take_stray_errors().len(), 1);
}

/// A program that never looks at them must not fill its memory with them.
#[test]
fn stray_errors_are_counted_and_only_the_first_ones_kept() {
    let sim = pinlane_testing::sim();
    let (device, armed) = trapped(&sim, |call, count| match call {
        Call::EventDestroy => Err(pinlane_driver::Error::new(
            ErrorKind::Other { code: count as u32 },
            "trap",
        )),
        _ => Ok(()),
    });
    let fail = |events: usize| {
        let events: Vec<_> = (0..events).map(|_| device.event().unwrap()).collect();
        armed.store(true, Ordering::Relaxed);
        drop(events); // two attempts to destroy each fail
        armed.store(false, Ordering::Relaxed);
    };
    fail(100);
    assert_eq!(device.stray_error_count(), 200);
    let codes: Vec<_> = device
        .take_stray_errors()
        .into_iter()
        .map(|error| match error {
            Error::Driver(error) => error.kind,
            other => panic!("{other}"),
        })
        .collect();
    let first = (0..100).map(|code| ErrorKind::Other { code });
    assert_eq!(codes, first.collect::<Vec<_>>());
    fail(1); // there is room again
    assert_eq!(device.take_stray_errors().len(), 2);
    assert_eq!(device.stray_error_count(), 202);
}

/// Memory whose owner panics when it is dropped.
struct Bomb(Vec<u8>);

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

// SAFETY: as for the `Vec` inside.
unsafe impl StableMemory for Bomb {
    type Element = u8;

    fn parts(&self) -> (*const u8, usize) {
        self.0.parts()
    }
}

// SAFETY: as for the `Vec` inside.
unsafe impl StableMemoryMut for Bomb {
    fn parts_mut(&mut self) -> (*mut u8, usize) {
        self.0.parts_mut()
    }
}

#[test]
fn panic_of_one_parked_buffer_does_not_free_the_others_in_flight() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let (one, two) = (device.stream().unwrap(), device.stream().unwrap());
    let mut small = device.alloc::<u8>(16).unwrap();
    let mut large = device.alloc::<u8>(8 * LARGE).unwrap();
    sim.hold();
    let bomb = device.register(Bomb(vec![1; 16])).unwrap();
    drop(one.upload(bomb, &mut small));
    drop(two.upload(device.pinned_from(&vec![1; 8 * LARGE]).unwrap(), &mut large));
    drop((one, two, small, large));
    sim.release();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(device))).is_err());
    assert_eq!(misuse(&sim), [""; 0]);
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(65536))]
struct Wide([[u8; 256]; 256]);

#[test]
fn elements_aligned_beyond_a_page_are_refused() {
    let device = pinlane_testing::open(&pinlane_testing::sim());
    let refused = device.pinned::<Wide>(1).map(drop);
    assert_eq!(refused, Err(Error::TooAligned { align: 65536 }));
}

#[test]
fn memory_pinned_for_another_driver_is_refused() {
    let (here, elsewhere) = (
        pinlane_testing::open(&pinlane_testing::sim()),
        pinlane_testing::open(&pinlane_testing::sim()),
    );
    let stream = here.stream().unwrap();
    let mut target = here.alloc::<u8>(16).unwrap();
    let foreign = elsewhere.pinned::<u8>(16).unwrap();
    let refused = stream.upload(foreign, &mut target).map(drop).unwrap_err();
    assert_eq!(refused.error, Error::WrongDevice);
    assert!(refused.buffer.is_some());
}

/// Runs something when it is woken, and something when it is dropped.
struct Waking {
    wake: Box<dyn Fn() + Send + Sync>,
    on_drop: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Wake for Waking {
    fn wake(self: Arc<Self>) {
        (self.wake)();
    }
}

impl Drop for Waking {
    fn drop(&mut self) {
        if let Some(work) = self.on_drop.get_mut().unwrap().take() {
            work();
        }
    }
}

#[test]
fn waker_that_waits_for_the_device_when_dropped_does_not_deadlock() {
    must_return(|| {
        let sim = pinlane_testing::sim();
        let device = pinlane_testing::open(&sim);
        let stream = device.stream().unwrap();
        let mut target = device.alloc::<u8>(4096).unwrap();
        let mut transfer = pin!(
            stream
                .upload(device.pinned(4096).unwrap(), &mut target)
                .unwrap()
        );
        let waits = {
            let device = device.clone();
            Waker::from(Arc::new(Waking {
                wake: Box::new(|| ()),
                on_drop: Mutex::new(Some(Box::new(move || device.synchronize().unwrap()))),
            }))
        };
        sim.hold();
        let polled = transfer.as_mut().poll(&mut Context::from_waker(&waits));
        assert!(polled.is_pending());
        drop(waits);
        sim.release();
        // Replaces the waker, whose drop waits for the very callback that needs the lock.
        let _ = transfer
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
    });
}

#[test]
fn tasks_are_woken_on_a_thread_that_may_drop_the_device() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(4096).unwrap();
    let source = device.pinned::<u8>(4096).unwrap();
    sim.hold();
    let mut transfer = Box::pin(stream.upload(source, &mut target).unwrap());
    let (told, woken) = mpsc::channel();
    let task = Arc::new(Mutex::new(None));
    let waker = {
        let task = Arc::clone(&task);
        Waker::from(Arc::new(Waking {
            wake: Box::new(move || {
                drop(task.lock().unwrap().take()); // as an executor that shuts down
                told.send(thread::current().name().map(str::to_owned))
                    .unwrap();
            }),
            on_drop: Mutex::default(),
        }))
    };
    let polled = transfer.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    *task.lock().unwrap() = Some((transfer, target, stream, device));
    sim.release();
    let thread = woken.recv().unwrap().unwrap_or_default();
    assert_eq!(thread, "pinlane-wake");
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn awaited_transfer_does_not_wait_for_a_later_one() {
    let sim = Sim::builder()
        .profile(pinlane_testing::profile())
        .idle_progress(false)
        .build();
    let device = pinlane_testing::open(&sim);
    let stream = device.stream().unwrap();
    let kernels = Builtin::load(&device).unwrap();
    let (mut a, mut b) = (
        device.alloc::<u8>(64).unwrap(),
        device.alloc::<u8>(64).unwrap(),
    );
    sim.hold(); // so that both are awaited before either is done
    let early = stream.upload(device.pinned(64).unwrap(), &mut a).unwrap();
    kernels.spin(&stream, 1_000_000_000).unwrap();
    let late = stream.upload(device.pinned(64).unwrap(), &mut b).unwrap();
    let (mut early, mut late) = (pin!(early), pin!(late));
    let mut context = Context::from_waker(Waker::noop());
    assert!(late.as_mut().poll(&mut context).is_pending());
    assert!(early.as_mut().poll(&mut context).is_pending());
    sim.release();
    let early = loop {
        if let Poll::Ready(early) = early.as_mut().poll(&mut context) {
            break early;
        }
        assert!(sim.step(), "it ends");
    };
    assert!(early.is_ok());
    assert!(
        !late.is_done().unwrap(),
        "the later one is still behind the kernel"
    );
}

#[test]
fn transfer_that_was_awaited_is_done() {
    let device = pinlane_testing::open(&pinlane_testing::sim());
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(64).unwrap();
    let mut transfer = stream
        .upload(device.pinned(64).unwrap(), &mut target)
        .unwrap();
    pinlane_conformance::library::block_on(&mut transfer).unwrap();
    assert!(transfer.is_done().unwrap());
    assert!(transfer.wait_timeout(std::time::Duration::ZERO).unwrap());
}

/// The buffer is gone by then, which is the caller's mistake, as polling a future again is.
#[test]
fn waiting_for_a_transfer_that_has_returned_its_buffer_panics() {
    let device = pinlane_testing::open(&pinlane_testing::sim());
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(64).unwrap();
    let panics = |wait: &mut dyn FnMut()| {
        let panic = catch_unwind(AssertUnwindSafe(wait)).expect_err("it panics");
        let message = panic.downcast_ref::<String>().cloned();
        let message = message.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        assert_eq!(message.unwrap(), "the transfer was awaited before");
    };
    let pinned = device.pinned(64).unwrap();
    let mut transfer = Some(stream.upload(pinned, &mut target).unwrap());
    let pinned = pinlane_conformance::library::block_on(transfer.as_mut().unwrap()).unwrap();
    panics(&mut || drop(transfer.take().unwrap().wait()));
    let scoped = device.scope(|scope| {
        let mut transfer = Some(scope.upload(&stream, &pinned, &mut target)?);
        pinlane_conformance::library::block_on(transfer.as_mut().unwrap())?;
        panics(&mut || drop(transfer.take().unwrap().wait()));
        Ok(())
    });
    scoped.unwrap();
}

#[test]
fn shutdown_takes_its_patience_once() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let stream = device.stream().unwrap();
    let mut targets: Vec<_> = (0..4).map(|_| device.alloc::<u8>(64).unwrap()).collect();
    sim.hold();
    for target in &mut targets {
        drop(stream.upload(device.pinned(64).unwrap(), target));
    }
    let before_ns = sim.now_ns();
    drop((targets, stream, device));
    let waited_s = (sim.now_ns() - before_ns) as f64 / 1e9;
    assert!(waited_s < 6.0, "{waited_s} virtual seconds");
    sim.release();
}

/// Waits for a stream at the very moment when something is put onto it.
#[derive(Default)]
struct Overtaken {
    stream: Mutex<Option<pinlane::Stream>>,
    waits: AtomicU64,
}

struct Overtake(Arc<Overtaken>);

// SAFETY: it returns no errors.
unsafe impl Hook for Overtake {
    fn before(&self, call: Call) -> pinlane_driver::Result<()> {
        if call == Call::StreamSynchronize {
            self.0.waits.fetch_add(1, Ordering::Relaxed);
        }
        if matches!(call, Call::CopyAsync | Call::EventRecord) {
            let stream = self.0.stream.lock().unwrap().take();
            if let Some(stream) = stream {
                stream.synchronize().unwrap();
            }
        }
        Ok(())
    }
}

#[test]
fn a_wait_in_the_middle_of_a_submission_does_not_count_for_it() {
    let sim = pinlane_testing::sim();
    let overtaken = Arc::new(Overtaken::default());
    let hook = Overtake(Arc::clone(&overtaken));
    let device = Device::from_driver(Arc::new(Intercepted::new(sim.driver(), hook)));
    let (stream, event) = (device.stream().unwrap(), device.event().unwrap());
    let mut on_device = device.alloc::<u8>(100).unwrap();
    let arm = || *overtaken.stream.lock().unwrap() = Some(stream.clone());
    let must_ask = |what: &str| {
        let before = overtaken.waits.load(Ordering::Relaxed);
        stream.synchronize().unwrap();
        let after = overtaken.waits.load(Ordering::Relaxed);
        assert_eq!(
            after,
            before + 1,
            "after {what} the stream is not known to be idle"
        );
    };

    arm();
    let buffer = device.pinned_from(&[1; 100]).unwrap();
    let transfer = stream.upload(buffer, &mut on_device).unwrap();
    must_ask("an upload");
    transfer.wait().unwrap();
    arm();
    stream.record(&event).unwrap();
    must_ask("an event");

    // Nothing was submitted since: nobody needs to be asked.
    let before = overtaken.waits.load(Ordering::Relaxed);
    stream.synchronize().unwrap();
    assert_eq!(overtaken.waits.load(Ordering::Relaxed), before);
    drop((on_device, event, stream, device));
    pinlane_testing::assert_clean(&sim);
}

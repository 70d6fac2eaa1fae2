//! Wakers that block.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};

use pinlane::{Device, PinnedBuf, Transfer};
use pinlane_sim::Sim;
use pinlane_testing::must_return;

use super::Waking;

/// A transfer that was polled once and is not done.
fn awaited(
    device: &Device,
    wake: impl Fn() + Send + Sync + 'static,
) -> Pin<Box<Transfer<PinnedBuf<u8>>>> {
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(64).unwrap();
    let upload = stream.upload(device.pinned(64).unwrap(), &mut target);
    let mut transfer = Box::pin(upload.unwrap());
    let waker = Waker::from(Arc::new(Waking {
        wake: Box::new(wake),
        on_drop: Mutex::default(),
    }));
    let polled = transfer.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    transfer
}

fn held() -> (Sim, Device) {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    sim.hold();
    (sim, device)
}

/// The first wakers block until the task of the last one was woken and has its buffer.
fn last_is_woken(blocked: usize) {
    let (sim, device) = held();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let may_go_on = Arc::new(Mutex::new(may_go_on));
    let (returned, all_returned) = mpsc::channel();
    let block = || {
        let (may_go_on, returned) = (Arc::clone(&may_go_on), returned.clone());
        move || {
            let _ = may_go_on.lock().unwrap().recv(); // ends when `go_on` is dropped
            returned.send(()).unwrap();
        }
    };
    let blocking: Vec<_> = (0..blocked).map(|_| awaited(&device, block())).collect();
    let (told, woken) = mpsc::channel();
    let mut last = awaited(&device, move || told.send(()).unwrap());
    sim.release();
    woken.recv().unwrap();
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(
        last.as_mut().poll(&mut context),
        Poll::Ready(Ok(_))
    ));
    assert!(all_returned.try_recv().is_err(), "all others are blocked");
    drop(go_on);
    (0..blocked).for_each(|_| all_returned.recv().unwrap());
    drop((blocking, last, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn a_waker_that_blocks_delays_no_other_task() {
    must_return(|| last_is_woken(1));
}

#[test]
fn many_wakers_that_block_delay_no_other_task() {
    must_return(|| last_is_woken(5));
}

/// Nothing is in the queue when the waker begins to block.
#[test]
fn a_task_is_woken_that_is_done_after_another_waker_has_blocked() {
    must_return(|| {
        let (sim, device) = held();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let may_go_on = Mutex::new(may_go_on);
        let (began, has_begun) = mpsc::channel();
        let blocking = awaited(&device, move || {
            began.send(()).unwrap();
            let _ = may_go_on.lock().unwrap().recv();
        });
        sim.release();
        has_begun.recv().unwrap();
        sim.hold();
        let (told, woken) = mpsc::channel();
        let later = awaited(&device, move || told.send(()).unwrap());
        sim.release();
        woken.recv().unwrap();
        drop((go_on, blocking, later));
    });
}

/// One thread wakes tasks, and one is ready to take over.
#[test]
#[cfg_attr(miri, ignore = "reads /proc")]
fn threads_that_were_replaced_exit_when_their_wakers_return() {
    must_return(|| {
        last_is_woken(5);
        let name = |task: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(task.ok()?.path().join("comm")).ok() // gone since it was listed
        };
        let is_ours = |name: &String| name.trim_end() == "pinlane-wake";
        let count = || {
            let tasks = std::fs::read_dir("/proc/self/task").unwrap();
            tasks.filter_map(name).filter(is_ours).count()
        };
        while count() > 2 {
            std::thread::yield_now();
        }
    });
}

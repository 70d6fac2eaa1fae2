//! Several threads that read one buffer on one stream.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use pinlane::Device;
use pinlane_driver::{Call, Hook, Intercepted};

use super::LARGE;

/// Holds the first thread that has put a fence onto the stream, until the others are done or cannot go on.
struct FirstFence {
    armed: AtomicBool,
    others: Mutex<usize>,
    done: Condvar,
}

impl FirstFence {
    /// One of the others is done.
    fn count(&self) {
        *self.others.lock().unwrap() += 1;
        self.done.notify_all();
    }
}

// SAFETY: it never fails.
unsafe impl Hook for FirstFence {
    fn before(&self, _: Call) -> pinlane_driver::Result<()> {
        Ok(())
    }

    fn after(&self, call: Call) {
        if call == Call::EventRecord && self.armed.swap(false, Ordering::SeqCst) {
            let others = self.others.lock().unwrap();
            // They wait for this thread, where all is well.
            let patience = Duration::from_millis(100);
            let waited = self
                .done
                .wait_timeout_while(others, patience, |others| *others < 2);
            drop(waited.unwrap());
        }
    }
}

/// The first of three readers has its fence on the stream, and the others overtake it on the way to the
/// books, if they can: then the books forget the last one.
#[test]
fn readers_on_one_stream_from_many_threads_are_all_waited_for() {
    let sim = pinlane_testing::sim();
    let hook = FirstFence {
        armed: AtomicBool::new(false),
        others: Mutex::new(0),
        done: Condvar::new(),
    };
    let driver = Arc::new(Intercepted::new(sim.driver(), hook));
    let hook = driver.hook();
    let device = Device::from_driver(driver.clone());
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let mut buffer = device.alloc::<u8>(LARGE).unwrap();
    let targets: Vec<_> = (0..3)
        .map(|_| device.pinned::<u8>(LARGE).unwrap())
        .collect();
    stream.fill_bytes(&mut buffer, 7).unwrap();
    stream.synchronize().unwrap();
    sim.hold();
    hook.armed.store(true, Ordering::SeqCst);
    let start = Barrier::new(targets.len());
    let reads: Vec<_> = thread::scope(|scope| {
        let read = |target| {
            start.wait();
            let read = stream.download(&buffer, target).unwrap();
            hook.count();
            read
        };
        let readers: Vec<_> = targets
            .into_iter()
            .map(|target| scope.spawn(move || read(target)))
            .collect();
        readers
            .into_iter()
            .map(|reader| reader.join().unwrap())
            .collect()
    });
    other.fill_bytes(&mut buffer, 8).unwrap();
    sim.release();
    for read in reads {
        let target = read.wait().unwrap();
        assert!(target.iter().all(|byte| *byte == 7));
    }
}

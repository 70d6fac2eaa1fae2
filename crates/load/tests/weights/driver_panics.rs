//! The driver panics while memory is freed after an error.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinlane::load::{Io, LoadErrorKind, Weights};
use pinlane::{Budget, Device};
use pinlane_driver::{Call, Hook, Intercepted, Result};

use super::rig::{PIECE_BYTES, Rig, config, model};
use super::support::Scratch;
use pinlane_testing::{Spring, Trap};
use pinlane_testing::{must_return, sim};

/// Changes a file at a certain call, and panics at the next free.
struct Ends {
    at: Call,
    path: PathBuf,
    changed: AtomicBool,
    panicked: AtomicBool,
    well: Arc<AtomicBool>,
}

fn grow(path: &Path) {
    let file = File::options().write(true).open(path).expect("the file");
    let bytes = file.metadata().expect("our own file").len();
    file.set_len(bytes + 1).expect("our own file");
}

// SAFETY: it never fails.
unsafe impl Hook for Ends {
    fn before(&self, call: Call) -> Result<()> {
        if self.well.load(Ordering::SeqCst) {
            return Ok(());
        }
        if call == self.at && !self.changed.swap(true, Ordering::SeqCst) {
            grow(&self.path);
        }
        let free = call == Call::HostFree && self.changed.load(Ordering::SeqCst);
        let panics = free && !self.panicked.swap(true, Ordering::SeqCst);
        assert!(!panics, "on purpose");
        Ok(())
    }
}

fn ending(path: &Path, at: Call, slots: usize) -> (Rig, Arc<AtomicBool>) {
    let sim = sim();
    let well = Arc::new(AtomicBool::new(false));
    let hook = Ends {
        at,
        path: path.to_owned(),
        changed: AtomicBool::new(false),
        panicked: AtomicBool::new(false),
        well: Arc::clone(&well),
    };
    let driver = Arc::new(Intercepted::new(sim.driver(), hook));
    let budget = Budget::with_limit((slots * PIECE_BYTES) as u64);
    let device = Device::with_budget(driver, &budget);
    (Rig::with(sim, device), well)
}

/// A thread fails, and the driver panics when the slots of open pieces are freed.
#[test]
fn the_error_is_returned_even_if_the_driver_panics_after_it() {
    must_return(|| {
        let scratch = Scratch::new();
        let path = model(&scratch);
        let weights = Weights::open(&path).expect("a good file");
        let (rig, well) = ending(&path, Call::CopyAsync, 8);
        let error = weights
            .load(&rig.device, &config(1).io(Io::Buffered))
            .expect_err("the file has changed");
        well.store(true, Ordering::SeqCst);
        let reported = match error.kind() {
            LoadErrorKind::FileChanged => true,
            LoadErrorKind::Panicked { message } => message == "on purpose",
            _ => false,
        };
        assert!(reported, "{error}");
    });
}

/// The same, with another thread that waits for a slot.
#[test]
fn waiting_threads_wake_even_if_the_driver_panics_after_an_error() {
    for _ in 0..100 {
        must_return(|| {
            let scratch = Scratch::new();
            let path = model(&scratch);
            let weights = Weights::open(&path).expect("a good file");
            let (rig, well) = ending(&path, Call::HostAlloc, 1);
            let loaded = weights.load(&rig.device, &config(2).io(Io::Direct));
            well.store(true, Ordering::SeqCst);
            loaded.map(drop).expect_err("the file has changed");
        });
    }
}

/// Memory that the driver did not release stays mapped, and counted.
#[test]
fn a_driver_panic_does_not_unmap_pinned_memory() {
    let kinds = [(64 << 10, Call::HostFree), (4 << 20, Call::HostUnregister)];
    let counted = kinds.map(|(bytes, call)| {
        let sim = sim();
        let (device, trap) = Trap::under(&sim);
        let slot = device.pinned::<u8>(bytes).expect("enough memory");
        trap.set(call, 0, Spring::Panic);
        let free = std::panic::AssertUnwindSafe(|| {
            drop(slot);
            device.trim();
        });
        let freed = std::panic::catch_unwind(free);
        let sprung = trap.disarm();
        assert_eq!(freed.is_err(), sprung == 1);
        (sprung == 1).then(|| device.budget().in_use_bytes())
    });
    // Only large buffers are mapped and registered; the driver allocates small ones.
    assert_eq!(counted[0], Some(64 << 10));
    assert!([None, Some(4 << 20)].contains(&counted[1]), "{counted:?}");
}

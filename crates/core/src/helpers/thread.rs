//! The helper threads: they spin for work, help, and sleep.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::HelperPool;

/// How long an idle thread spins for work before it sleeps. Waking it takes some 50 µs, as long as
/// staging a few hundred KiB.
const SPIN_TIME: Duration = Duration::from_micros(300);

/// Sleepers that each caller and each woken helper wakes. One call takes a few microseconds, but
/// the woken threads arrive only after some 50.
pub(super) const WAKES: usize = 4;

static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether this process is a fork. Helper threads of the parent do not exist here.
pub(super) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Makes [`is_forked`] work. Called before the first helper starts.
pub(super) fn watch_for_forks() {
    extern "C" fn note_child() {
        FORKED.store(true, Ordering::Relaxed);
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if cfg!(miri) {
            return;
        }
        // SAFETY: the handler only stores to an atomic, which is allowed after a fork.
        unsafe { libc::pthread_atfork(None, None, Some(note_child)) };
    });
}

impl HelperPool {
    /// Starts another thread, unless the system refuses.
    pub(super) fn start_thread(&'static self, number: usize) -> bool {
        std::thread::Builder::new()
            .name(format!("pinlane-lane-{number}"))
            .spawn(move || self.help_forever())
            .is_ok()
    }

    /// Wakes some helpers for the free places. Every woken helper does the same, since waking all
    /// of them would take one thread as long as the work itself.
    pub(super) fn wake_some(&self) {
        self.wake(self.wanted.load(Ordering::SeqCst).min(WAKES));
    }

    pub(super) fn wake(&self, threads: usize) {
        for _ in 0..threads {
            let sleeper = self.state().sleepers.pop();
            match sleeper {
                Some(thread) => thread.unpark(),
                None => return,
            }
        }
    }

    fn help_forever(&self) {
        let mut idle_since = Instant::now();
        self.awake.fetch_add(1, Ordering::Relaxed);
        loop {
            if self.wanted.load(Ordering::SeqCst) > 0
                && let Some((id, work, gate)) = self.join_job()
            {
                self.wake_some();
                self.help(id, work, &gate);
                idle_since = Instant::now();
            } else if idle_since.elapsed() < SPIN_TIME {
                for _ in 0..16 {
                    std::hint::spin_loop();
                }
            } else {
                self.awake.fetch_sub(1, Ordering::Relaxed);
                self.sleep();
                self.awake.fetch_add(1, Ordering::Relaxed);
                idle_since = Instant::now();
            }
        }
    }

    fn sleep(&self) {
        self.state().sleepers.push(std::thread::current());
        // A job may have been posted before the push; later posts wake this thread.
        if self.wanted.load(Ordering::SeqCst) == 0 || !self.has_room() {
            std::thread::park();
        }
        let me = std::thread::current().id();
        self.state().sleepers.retain(|thread| thread.id() != me);
    }

    fn has_room(&self) -> bool {
        let state = self.state();
        self.free_cpus(&state) > 0
    }
}

//! Lanes: the threads of the crew, which watch for work, help with it, and sleep.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Crew;

/// How long an idle thread watches for work before it sleeps. Waking a sleeper takes some 50 µs,
/// as long as staging a few hundred KiB.
const WATCH: Duration = Duration::from_micros(300);

/// Sleepers that each caller, and everyone who was woken, wakes. One call takes a few microseconds,
/// but those woken come only after some 50.
pub(super) const WAKES: usize = 4;

impl Crew {
    /// Threads are started when they are first wanted. Whether it could be.
    pub(super) fn start_thread(&'static self, number: usize) -> bool {
        std::thread::Builder::new()
            .name(format!("pinlane-lane-{number}"))
            .spawn(move || self.lane())
            .is_ok()
    }

    /// Wake some for the free seats. Everyone who wakes does the same: for one alone it would take
    /// as long as the work.
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

    /// A thread's life.
    fn lane(&self) {
        let mut idle_since = Instant::now();
        self.watching.fetch_add(1, Ordering::Relaxed);
        loop {
            if self.wanted.load(Ordering::SeqCst) > 0
                && let Some((id, work, gate)) = self.take_seat()
            {
                self.wake_some();
                self.help(id, work, &gate);
                idle_since = Instant::now();
            } else if idle_since.elapsed() < WATCH {
                for _ in 0..16 {
                    std::hint::spin_loop();
                }
            } else {
                self.watching.fetch_sub(1, Ordering::Relaxed);
                self.sleep();
                self.watching.fetch_add(1, Ordering::Relaxed);
                idle_since = Instant::now();
            }
        }
    }

    fn sleep(&self) {
        self.state().sleepers.push(std::thread::current());
        // A job may have been posted before we lay down; whoever posts later wakes us.
        if self.wanted.load(Ordering::SeqCst) == 0 || !self.has_room() {
            std::thread::park();
        }
        let me = std::thread::current().id();
        self.state().sleepers.retain(|thread| thread.id() != me);
    }
}

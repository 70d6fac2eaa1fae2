//! The relay: how several lanes work on the same chunks. It knows no GPU and no memory, only that a
//! chunk is opened once, its slices are worked off by whoever comes, and whoever ends the last one
//! closes it.
//!
//! All lanes work on the *same* chunk: so the first one is complete after some ten microseconds, and
//! the link then sees only large copies, back to back on one stream.

use std::ops::Range;

use crate::sync::{AtomicUsize, Mutex, Ordering, lock, pause};
use crate::{Error, Result};

/// What is done with chunks.
pub(crate) trait Chunks: Sync {
    /// Make the chunk ready to be worked on. Called once for each, by one lane; chunks before it
    /// may still be open. It may wait; false when `relay` was stopped meanwhile.
    fn open(&self, chunk: usize, relay: &Relay) -> Result<bool>;

    /// Work on one slice of an open chunk. Several lanes do so at once.
    fn slice(&self, chunk: usize, slice: usize);

    /// All slices are done. Called once.
    fn close(&self, chunk: usize) -> Result<()>;
}

/// The state of a relay.
pub(crate) struct Relay {
    /// Number of the first slice of each chunk, and the number of all slices.
    first_slices: Vec<usize>,
    progress: Vec<Progress>,
    /// The slice that is handed out next.
    next: AtomicUsize,
    stopped: AtomicUsize,
    errors: Mutex<Vec<Error>>,
}

struct Progress {
    /// 0 until it is open.
    open: AtomicUsize,
    slices_left: AtomicUsize,
}

impl Relay {
    /// For chunks of so many slices each.
    pub(crate) fn new(slices: impl Iterator<Item = usize>) -> Self {
        let (mut first_slices, mut progress) = (vec![0], Vec::new());
        for count in slices {
            debug_assert!(count > 0, "nobody would close a chunk of no slices");
            first_slices.push(first_slices[first_slices.len() - 1] + count);
            progress.push(Progress {
                open: AtomicUsize::new(0),
                slices_left: AtomicUsize::new(count),
            });
        }
        Self {
            first_slices,
            progress,
            next: AtomicUsize::new(0),
            stopped: AtomicUsize::new(0),
            errors: Mutex::new(Vec::new()),
        }
    }

    /// All slices of all chunks.
    pub(crate) fn slices(&self) -> usize {
        self.first_slices[self.progress.len()]
    }

    fn slices_of(&self, chunk: usize) -> Range<usize> {
        self.first_slices[chunk]..self.first_slices[chunk + 1]
    }

    /// One lane's part: work until nothing is left, something has failed, or `may_stay` says no.
    pub(crate) fn run(&self, work: &impl Chunks, may_stay: impl Fn() -> bool) {
        let unwinding = StopOnUnwind(self);
        let mut chunk = 0;
        while may_stay() && !self.is_stopped() {
            let slice = self.next.fetch_add(1, Ordering::Relaxed);
            if slice >= self.slices() {
                break;
            }
            while self.slices_of(chunk).end <= slice {
                chunk += 1;
            }
            if let Err(error) = self.step(work, chunk, slice) {
                self.fail(error);
            }
        }
        std::mem::forget(unwinding);
    }

    fn step(&self, work: &impl Chunks, chunk: usize, slice: usize) -> Result<()> {
        let progress = &self.progress[chunk];
        let first = self.slices_of(chunk).start;
        if slice == first {
            if !work.open(chunk, self)? {
                return Ok(());
            }
            progress.open.store(1, Ordering::Release);
        } else if !self.wait_for(|| progress.open.load(Ordering::Acquire) == 1) {
            return Ok(());
        }
        work.slice(chunk, slice - first);
        // Everything that the others wrote into the chunk is seen by the one that closes it.
        if progress.slices_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            work.close(chunk)?;
        }
        Ok(())
    }

    /// Wait until `done`. False when the relay was stopped before.
    pub(crate) fn wait_for(&self, done: impl Fn() -> bool) -> bool {
        let mut spins = 0;
        while !done() {
            if self.is_stopped() {
                return false;
            }
            pause(&mut spins);
        }
        true
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire) == 1
    }

    fn fail(&self, error: Error) {
        lock(&self.errors).push(error);
        self.stopped.store(1, Ordering::Release);
    }

    /// The first error, once all lanes have returned. Those of other lanes go to `note`.
    pub(crate) fn into_result(self, note: impl FnMut(Error)) -> Result<()> {
        let mut errors = std::mem::take(&mut *lock(&self.errors)).into_iter();
        let first = errors.next();
        errors.for_each(note);
        first.map_or(Ok(()), Err)
    }
}

/// A lane that panics must not leave the others waiting for it.
struct StopOnUnwind<'a>(&'a Relay);

impl Drop for StopOnUnwind<'_> {
    fn drop(&mut self) {
        self.0.stopped.store(1, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// Counts what was done with each chunk.
    struct Counted {
        opened: Vec<AtomicU32>,
        worked: Vec<AtomicU32>,
        closed: Vec<AtomicU32>,
        slices: Vec<u32>,
        fail_open: Option<usize>,
        panic_in: Option<usize>,
    }

    impl Counted {
        fn new(slices: &[u32]) -> Self {
            let zeros = || slices.iter().map(|_| AtomicU32::new(0)).collect();
            Self {
                opened: zeros(),
                worked: zeros(),
                closed: zeros(),
                slices: slices.to_vec(),
                fail_open: None,
                panic_in: None,
            }
        }

        fn relay(&self) -> Relay {
            Relay::new(self.slices.iter().map(|&count| count as usize))
        }
    }

    impl Chunks for Counted {
        fn open(&self, chunk: usize, _: &Relay) -> Result<bool> {
            self.opened[chunk].fetch_add(1, Ordering::Relaxed);
            if self.fail_open == Some(chunk) {
                return Err(Error::WrongDevice);
            }
            Ok(true)
        }

        fn slice(&self, chunk: usize, slice: usize) {
            assert!(slice < self.slices[chunk] as usize);
            assert!(self.panic_in != Some(chunk), "on purpose");
            self.worked[chunk].fetch_add(1, Ordering::Relaxed);
        }

        fn close(&self, chunk: usize) -> Result<()> {
            let worked = self.worked[chunk].load(Ordering::Relaxed);
            assert_eq!(worked, self.slices[chunk], "closed before all was done");
            self.closed[chunk].fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    fn on_lanes(lanes: usize, relay: &Relay, work: &Counted) {
        std::thread::scope(|scope| {
            for _ in 0..lanes {
                scope.spawn(|| {
                    let _ = catch_unwind(AssertUnwindSafe(|| relay.run(work, || true)));
                });
            }
        });
    }

    #[test]
    fn each_chunk_is_opened_worked_off_and_closed_once() {
        for lanes in [1, 2, 5] {
            let work = Counted::new(&[1, 2, 7, 3, 1]);
            let relay = work.relay();
            on_lanes(lanes, &relay, &work);
            relay.into_result(|_| ()).unwrap();
            for chunk in 0..5 {
                assert_eq!(work.opened[chunk].load(Ordering::Relaxed), 1);
                assert_eq!(work.closed[chunk].load(Ordering::Relaxed), 1);
            }
        }
    }

    #[test]
    fn a_failure_stops_all_lanes_and_is_told() {
        let mut work = Counted::new(&[4, 4, 4]);
        work.fail_open = Some(1);
        let relay = work.relay();
        on_lanes(3, &relay, &work);
        assert_eq!(relay.into_result(|_| ()), Err(Error::WrongDevice));
        assert_eq!(work.closed[1].load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_panic_leaves_nobody_waiting() {
        let mut work = Counted::new(&[3, 3, 3]);
        work.panic_in = Some(1);
        on_lanes(3, &work.relay(), &work);
        assert_eq!(work.closed[1].load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_lane_that_leaves_early_leaves_its_work_to_the_others() {
        let work = Counted::new(&[2, 2, 2]);
        let relay = work.relay();
        relay.run(&work, || false);
        assert_eq!(work.opened[0].load(Ordering::Relaxed), 0);
        relay.run(&work, || true);
        assert_eq!(work.closed[2].load(Ordering::Relaxed), 1);
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;

    use super::*;

    /// Cells that slices write and `close` reads: loom reports it when they may race.
    struct Cells {
        ready: UnsafeCell<u32>,
        slices: [UnsafeCell<u32>; 2],
        closed: AtomicUsize,
    }

    // SAFETY: what the model is to show; loom checks every access.
    unsafe impl Sync for Cells {}

    impl Chunks for Cells {
        fn open(&self, _: usize, _: &Relay) -> Result<bool> {
            self.ready.with_mut(|ready| {
                // SAFETY: loom checks that nobody else accesses it.
                unsafe { *ready = 1 };
            });
            Ok(true)
        }

        fn slice(&self, _: usize, slice: usize) {
            // SAFETY: loom checks that nobody writes it meanwhile.
            let ready = self.ready.with(|ready| unsafe { *ready });
            self.slices[slice].with_mut(|cell| {
                // SAFETY: loom checks that nobody else accesses it.
                unsafe { *cell = ready };
            });
        }

        fn close(&self, _: usize) -> Result<()> {
            for cell in &self.slices {
                // SAFETY: loom checks that nobody writes it meanwhile.
                assert_eq!(cell.with(|cell| unsafe { *cell }), 1);
            }
            self.closed.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    #[test]
    fn slices_see_what_open_wrote_and_close_sees_what_slices_wrote() {
        loom::model(|| {
            let cells = Arc::new(Cells {
                ready: UnsafeCell::new(0),
                slices: [UnsafeCell::new(0), UnsafeCell::new(0)],
                closed: AtomicUsize::new(0),
            });
            let relay = Arc::new(Relay::new([2].into_iter()));
            let other = {
                let (cells, relay) = (Arc::clone(&cells), Arc::clone(&relay));
                loom::thread::spawn(move || relay.run(&*cells, || true))
            };
            relay.run(&*cells, || true);
            other.join().unwrap();
            assert_eq!(cells.closed.load(Ordering::Relaxed), 1);
        });
    }
}

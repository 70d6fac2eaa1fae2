//! How several lanes work through the chunks of a copy. It knows no GPU and no memory.
//!
//! All lanes work on the *same* chunk. So the first one is complete after some ten microseconds, and
//! the link then sees only large copies, back to back on one stream. Each chunk has a
//! [`SharedSlot`]: the lane that claims its first slice opens it, and the lane that finishes its
//! last slice closes it.

use crate::sync::{AtomicUsize, Mutex, Ordering, lock};
use crate::transfer_protocol::{Claim, SharedSlot};
use crate::unwind::on_unwind;
use crate::{Error, Result};

/// What lanes do with chunks. `B` is the buffer that a chunk passes through.
pub(super) trait ChunkWork<B>: Sync {
    /// Provides the buffer of a chunk. Called once for each, by one lane; chunks before it may
    /// still be open. It may wait, and returns `None` if the scheduler has stopped meanwhile.
    fn open(&self, chunk: usize) -> Result<Option<B>>;

    /// Works on one slice of an open chunk. Several lanes do so at once.
    fn slice(&self, chunk: usize, slice: usize, buffer: &B);

    /// Takes the buffer back when all slices are done. Called once for each chunk.
    fn close(&self, chunk: usize, buffer: B) -> Result<()>;
}

/// Hands out slices of chunks, in order.
pub(super) struct ChunkScheduler<B> {
    chunks: Vec<SharedSlot<B>>,
    /// Chunks before this one are fully claimed. Lanes that join late skip them.
    current: AtomicUsize,
    /// 1 after an error or a panic.
    stopped: AtomicUsize,
    errors: Mutex<Vec<Error>>,
}

impl<B: Send + Sync> ChunkScheduler<B> {
    pub(super) fn new(slices: impl Iterator<Item = usize>) -> Self {
        Self {
            chunks: slices.map(SharedSlot::unopened).collect(),
            current: AtomicUsize::new(0),
            stopped: AtomicUsize::new(0),
            errors: Mutex::new(Vec::new()),
        }
    }

    pub(super) fn slices(&self) -> usize {
        self.chunks.iter().map(SharedSlot::units).sum()
    }

    /// One lane's part: works until nothing is left, something has failed, or `may_continue` is
    /// false.
    pub(super) fn run(&self, work: &impl ChunkWork<B>, may_continue: impl Fn() -> bool) {
        // A lane that panics must not leave the others waiting for it.
        on_unwind(|| self.stop(), || self.work_while(work, may_continue));
    }

    fn work_while(&self, work: &impl ChunkWork<B>, may_continue: impl Fn() -> bool) {
        let mut chunk = self.current.load(Ordering::Relaxed);
        while chunk < self.chunks.len() && may_continue() && !self.is_stopped() {
            match self.chunks[chunk].claim(1) {
                Some(claim) => {
                    if let Err(error) = self.work_on(work, chunk, claim) {
                        lock(&self.errors).push(error);
                        self.stop();
                    }
                }
                None => {
                    chunk += 1;
                    self.current.fetch_max(chunk, Ordering::Relaxed);
                }
            }
        }
    }

    fn work_on(
        &self,
        work: &impl ChunkWork<B>,
        chunk: usize,
        claim: Claim<&SharedSlot<B>>,
    ) -> Result<()> {
        if claim.must_open() {
            match work.open(chunk)? {
                Some(buffer) => claim.open(buffer),
                None => return Ok(()),
            }
        } else if !claim.wait_until_open(|| self.is_stopped()) {
            return Ok(());
        }
        work.slice(chunk, claim.units().start, claim.buffer());
        match claim.finish() {
            Some(buffer) => work.close(chunk, buffer),
            None => Ok(()),
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire) == 1
    }

    fn stop(&self) {
        self.stopped.store(1, Ordering::Release);
    }

    /// The first error, once all lanes have returned. Later ones go to `keep_stray`.
    pub(super) fn result(&self, keep_stray: impl FnMut(Error)) -> Result<()> {
        let mut errors = std::mem::take(&mut *lock(&self.errors)).into_iter();
        let first = errors.next();
        errors.for_each(keep_stray);
        first.map_or(Ok(()), Err)
    }

    /// Buffers of chunks that were opened and never closed, since something failed.
    pub(super) fn take_buffers(&mut self) -> impl Iterator<Item = B> {
        let chunks = std::mem::take(&mut self.chunks).into_iter();
        chunks.filter_map(SharedSlot::into_inner)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// Counts what was done with each chunk. The buffer is the number of the chunk.
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

        fn scheduler(&self) -> ChunkScheduler<usize> {
            ChunkScheduler::new(self.slices.iter().map(|&count| count as usize))
        }
    }

    impl ChunkWork<usize> for Counted {
        fn open(&self, chunk: usize) -> Result<Option<usize>> {
            self.opened[chunk].fetch_add(1, Ordering::Relaxed);
            if self.fail_open == Some(chunk) {
                return Err(Error::WrongDevice);
            }
            Ok(Some(chunk))
        }

        fn slice(&self, chunk: usize, slice: usize, buffer: &usize) {
            assert!(slice < self.slices[chunk] as usize && chunk == *buffer);
            assert!(self.panic_in != Some(chunk), "on purpose");
            self.worked[chunk].fetch_add(1, Ordering::Relaxed);
        }

        fn close(&self, chunk: usize, buffer: usize) -> Result<()> {
            assert_eq!(chunk, buffer);
            let worked = self.worked[chunk].load(Ordering::Relaxed);
            assert_eq!(worked, self.slices[chunk], "closed before all was done");
            self.closed[chunk].fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    fn run_on_lanes(lanes: usize, scheduler: &ChunkScheduler<usize>, work: &Counted) {
        std::thread::scope(|scope| {
            for _ in 0..lanes {
                scope.spawn(|| {
                    let _ = catch_unwind(AssertUnwindSafe(|| scheduler.run(work, || true)));
                });
            }
        });
    }

    #[test]
    fn each_chunk_is_opened_worked_on_and_closed_once() {
        for lanes in [1, 2, 5] {
            let work = Counted::new(&[1, 2, 7, 3, 1]);
            let mut scheduler = work.scheduler();
            run_on_lanes(lanes, &scheduler, &work);
            scheduler.result(|_| ()).unwrap();
            for chunk in 0..5 {
                assert_eq!(work.opened[chunk].load(Ordering::Relaxed), 1);
                assert_eq!(work.closed[chunk].load(Ordering::Relaxed), 1);
            }
            assert_eq!(scheduler.slices(), 14);
            assert_eq!(scheduler.take_buffers().count(), 0);
        }
    }

    #[test]
    fn a_failure_stops_all_lanes_and_is_returned() {
        let mut work = Counted::new(&[4, 4, 4]);
        work.fail_open = Some(1);
        let scheduler = work.scheduler();
        run_on_lanes(3, &scheduler, &work);
        assert_eq!(scheduler.result(|_| ()), Err(Error::WrongDevice));
        assert_eq!(work.closed[1].load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_panic_leaves_no_lane_waiting_and_loses_no_buffer() {
        let mut work = Counted::new(&[3, 3, 3]);
        work.panic_in = Some(1);
        let mut scheduler = work.scheduler();
        run_on_lanes(3, &scheduler, &work);
        assert_eq!(work.closed[1].load(Ordering::Relaxed), 0);
        assert!(scheduler.take_buffers().any(|buffer| buffer == 1));
    }

    #[test]
    fn a_lane_that_leaves_early_leaves_its_work_to_the_others() {
        let work = Counted::new(&[2, 2, 2]);
        let scheduler = work.scheduler();
        scheduler.run(&work, || false);
        assert_eq!(work.opened[0].load(Ordering::Relaxed), 0);
        scheduler.run(&work, || true);
        assert_eq!(work.closed[2].load(Ordering::Relaxed), 1);
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;

    use super::*;

    /// Cells that slices write and `close` reads: loom reports every possible race.
    struct Cells {
        ready: u32,
        slices: [UnsafeCell<u32>; 2],
    }

    // SAFETY: what the model is to show; loom checks every access.
    unsafe impl Sync for Cells {}

    struct CountClosed(AtomicUsize);

    impl ChunkWork<Cells> for CountClosed {
        fn open(&self, _: usize) -> Result<Option<Cells>> {
            Ok(Some(Cells {
                ready: 1,
                slices: [UnsafeCell::new(0), UnsafeCell::new(0)],
            }))
        }

        fn slice(&self, _: usize, slice: usize, cells: &Cells) {
            cells.slices[slice].with_mut(|cell| {
                // SAFETY: loom checks that nothing else accesses it.
                unsafe { *cell = cells.ready };
            });
        }

        fn close(&self, _: usize, cells: Cells) -> Result<()> {
            for cell in &cells.slices {
                // SAFETY: loom checks that nothing writes it meanwhile.
                assert_eq!(cell.with(|cell| unsafe { *cell }), 1);
            }
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    #[test]
    fn slices_see_what_open_wrote_and_close_sees_what_slices_wrote() {
        loom::model(|| {
            let work = Arc::new(CountClosed(AtomicUsize::new(0)));
            let scheduler = Arc::new(ChunkScheduler::new([2].into_iter()));
            let other = {
                let (work, scheduler) = (Arc::clone(&work), Arc::clone(&scheduler));
                loom::thread::spawn(move || scheduler.run(&*work, || true))
            };
            scheduler.run(&*work, || true);
            other.join().unwrap();
            assert_eq!(work.0.load(Ordering::Relaxed), 1);
        });
    }
}

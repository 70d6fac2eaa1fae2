//! One pass over the samples.

use std::fmt;
use std::iter::FusedIterator;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::{EpochState, SampleOrder, panic};

use super::common::Core;
use super::engine::Engine;
use super::read::Reader;
use super::{Batch, LoaderError};

/// How long the end of an epoch waits for its last copies.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same after an error, to find out which of them got to the device.
const PATIENCE_AFTER_ERROR: Duration = Duration::from_millis(100);

/// The batches of one epoch, in their order. Threads read ahead while it lives; dropped, it stops them.
///
/// It ends after an error. Before it ends it waits until its last copies are done, for some seconds at
/// most, so that the error of one is told; otherwise no call waits for the device.
pub struct Epoch {
    core: Arc<Core>,
    engine: Arc<Engine>,
    number: u64,
    threads: Vec<JoinHandle<()>>,
    /// The caller reads samples itself.
    alone: Option<Reader>,
    ended: bool,
}

impl Epoch {
    /// The core is kept for this epoch already.
    pub(super) fn start(
        core: &Arc<Core>,
        number: u64,
        order: SampleOrder,
        first: u64,
    ) -> Result<Self, LoaderError> {
        core.means.depot.begin();
        let engine = Arc::new(Engine::new(core.means.clone(), order, first));
        let mut epoch = Self {
            core: Arc::clone(core),
            engine,
            number,
            threads: Vec::new(),
            alone: (core.means.workers == 0).then(Reader::default),
            ended: false,
        };
        for worker in 0..core.means.workers {
            let engine = Arc::clone(&epoch.engine);
            let named = thread::Builder::new().name(format!("pinlane-load-{worker}"));
            match named.spawn(move || work(&engine, &mut Reader::default(), true)) {
                Ok(thread) => epoch.threads.push(thread),
                Err(error) if epoch.threads.is_empty() => return Err(LoaderError::Threads(error)),
                Err(_) => break, // fewer will do
            }
        }
        Ok(epoch)
    }

    /// Which epoch it is.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How far it has come, as [`Loader::state`](super::Loader::state) says.
    #[must_use]
    pub fn state(&self) -> EpochState {
        self.core.state()
    }

    /// Wait until the next batch is ready, or the end is known, at most this long. Whether it is so:
    /// then [`next`](Iterator::next) does not wait for samples. Without workers nothing is ready before
    /// it is asked for, so this is true at once.
    ///
    /// For consumers that look after something else meanwhile, such as whether to stop.
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        if self.ended || self.alone.is_some() {
            return true;
        }
        let now = Instant::now();
        let until = now.checked_add(timeout);
        // As good as never.
        self.engine
            .await_next(until.unwrap_or_else(|| now + Duration::from_secs(1 << 30)))
    }

    /// Stop the threads, wait for the last copies, unless there is no patience, and let another epoch
    /// begin. The error of a copy.
    fn end(&mut self, patience: Duration) -> Option<LoaderError> {
        if self.ended {
            return None;
        }
        self.ended = true;
        self.engine.stop();
        for thread in self.threads.drain(..) {
            // One that panicked has told the engine.
            let _ = thread.join();
        }
        self.engine.clear();
        let failed = match patience.is_zero() {
            true => None,
            false => self.settle(patience),
        };
        self.core.lost(self.engine.first_lost());
        self.core.release();
        failed
    }

    /// The last copies must not fail unseen.
    fn settle(&self, patience: Duration) -> Option<LoaderError> {
        let depot = &self.core.means.depot;
        let batch = self.core.state().batch;
        match catch_unwind(AssertUnwindSafe(|| depot.settle(patience))) {
            Ok(settled) => settled.err().map(|failed| self.engine.told(batch, failed)),
            Err(panic) => {
                let text = panic::text(panic);
                Some(LoaderError::Died { batch, text })
            }
        }
    }
}

/// Read and deliver. A panic is told to the consumer.
fn work(engine: &Engine, reader: &mut Reader, patient: bool) {
    let work = AssertUnwindSafe(|| engine.work(reader, patient));
    if let Err(panic) = catch_unwind(work) {
        engine.died(panic::text(panic));
    }
}

impl Iterator for Epoch {
    type Item = Result<Batch, LoaderError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        if let Some(reader) = &mut self.alone {
            let start = Instant::now();
            work(&self.engine, reader, false);
            self.core.means.counters.consumer_wait_ns.add_since(start);
        }
        match self.engine.take() {
            Some(Ok(batch)) => {
                self.core.handed_out(self.number, batch.number() + 1);
                Some(Ok(batch))
            }
            Some(Err(error)) => {
                if let Some(LoaderError::Device { error, .. }) = self.end(PATIENCE_AFTER_ERROR) {
                    self.core.means.depot.keep_stray(error);
                }
                Some(Err(error))
            }
            None => self.end(PATIENCE).map(Err),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self.ended {
            true => (0, Some(0)),
            // One more where a copy fails in the end.
            false => (0, Some(self.engine.left() as usize + 1)),
        }
    }
}

impl FusedIterator for Epoch {}

impl Drop for Epoch {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Epoch")
            .field("number", &self.number)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

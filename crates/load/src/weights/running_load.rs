//! A running load: its threads, and which tensors are complete.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::job::Job;
use super::stats::LoadStats;
use super::worker::{self, WorkerEvent};
use super::{LoadConfig, LoadProgress, ProgressCallback};
use crate::{LoadError, LoadErrorKind, TensorInfo};
use pinlane_core::internal::{keep_stray_error, lock};

/// A running load. Dropping it cancels the load and waits for its copies in flight.
pub(super) struct RunningLoad {
    pub(super) job: Arc<Job>,
    threads: Vec<JoinHandle<()>>,
    events: Receiver<WorkerEvent>,
    /// Missing bytes of each tensor.
    missing_bytes: Vec<u64>,
    complete: VecDeque<usize>,
    progress: LoadProgress,
    on_progress: Option<ProgressCallback>,
    /// An error was returned.
    failed: bool,
}

impl RunningLoad {
    pub(super) fn start(job: Job, config: &LoadConfig) -> Result<Self, LoadError> {
        let (sender, events) = mpsc::channel();
        let missing_bytes: Vec<_> = job.tensors.iter().map(TensorInfo::len_bytes).collect();
        let tensors = 0..missing_bytes.len();
        let complete: VecDeque<_> = tensors.filter(|at| missing_bytes[*at] == 0).collect();
        let mut stream = Self {
            progress: LoadProgress {
                bytes: 0,
                total_bytes: missing_bytes.iter().sum(),
                tensors: complete.len(),
                total_tensors: missing_bytes.len(),
            },
            threads: Vec::with_capacity(job.threads),
            job: Arc::new(job),
            events,
            missing_bytes,
            complete,
            on_progress: config.on_progress.clone(),
            failed: false,
        };
        for number in 0..stream.job.threads {
            let (job, sender) = (Arc::clone(&stream.job), sender.clone());
            let thread = std::thread::Builder::new().name(format!("pinlane-load-{number}"));
            match thread.spawn(move || worker::run(&job, &sender)) {
                Ok(thread) => stream.threads.push(thread),
                Err(error) if number == 0 => {
                    return Err(LoadErrorKind::io("start a thread", &error).into());
                }
                Err(_) => break, // fewer threads will do
            }
        }
        lock(&stream.job.stats).threads = stream.threads.len();
        Ok(stream)
    }

    pub(super) fn stats(&self) -> LoadStats {
        *lock(&self.job.stats)
    }

    pub(super) fn progress(&self) -> LoadProgress {
        self.progress
    }

    /// Whether a complete tensor can be taken without waiting.
    pub(super) fn has_complete(&self) -> bool {
        !self.complete.is_empty()
    }

    /// Whether an error was returned.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    fn handle(&mut self, event: WorkerEvent) -> Result<(), LoadError> {
        for part in event? {
            let missing = &mut self.missing_bytes[part.tensor];
            *missing -= part.copy.len_bytes;
            if *missing == 0 {
                self.complete.push_back(part.tensor);
                self.progress.tensors += 1;
            }
            self.progress.bytes += part.copy.len_bytes;
        }
        if let Some(callback) = &self.on_progress {
            (callback.0)(self.progress);
        }
        Ok(())
    }

    /// The next complete tensor, or `Pending` if none completes by the deadline.
    pub(super) fn next_by(
        &mut self,
        deadline: Option<Instant>,
    ) -> Poll<Option<Result<usize, LoadError>>> {
        let mut waited = false;
        loop {
            if self.failed {
                return Poll::Ready(None);
            }
            if let Some(number) = self.complete.pop_front() {
                return Poll::Ready(Some(Ok(number)));
            }
            let event = match deadline.map(|at| at.saturating_duration_since(Instant::now())) {
                None => self.events.recv().map_err(RecvTimeoutError::from),
                // Events of a large tensor may keep coming past the deadline.
                Some(Duration::ZERO) if waited => Err(RecvTimeoutError::Timeout),
                Some(left) => self.events.recv_timeout(left),
            };
            waited = true;
            let handled = match event {
                Ok(event) => self.handle(event),
                Err(RecvTimeoutError::Timeout) => return Poll::Pending,
                // All threads have ended.
                Err(_) if self.progress.tensors == self.progress.total_tensors => {
                    return Poll::Ready(None);
                }
                Err(_) => {
                    let message = "no message".to_owned();
                    Err(LoadErrorKind::Panicked { message }.into())
                }
            };
            if let Err(error) = handled {
                return Poll::Ready(Some(Err(self.fail(error))));
            }
        }
    }

    /// Cancels the load and waits for its threads. No copy is submitted after it.
    pub(super) fn cancel(&mut self) {
        let errors = self.stop();
        self.keep_stray(errors);
    }

    /// Cancels the load and waits for its threads. Returns the errors not yet taken.
    fn stop(&mut self) -> Vec<LoadError> {
        self.job.scheduler.cancel();
        for thread in self.threads.drain(..) {
            // A panic was sent as an event.
            let _ = thread.join();
        }
        self.events.try_iter().filter_map(Result::err).collect()
    }

    /// Stops the load. Returns a panic if there was one, which may have caused the other errors.
    pub(super) fn fail(&mut self, first: LoadError) -> LoadError {
        self.failed = true;
        let mut errors = vec![first];
        errors.extend(self.stop());
        let panicked = |error: &LoadError| matches!(error.kind(), LoadErrorKind::Panicked { .. });
        let error = errors.remove(errors.iter().position(panicked).unwrap_or(0));
        self.keep_stray(errors);
        error
    }

    fn keep_stray(&self, errors: Vec<LoadError>) {
        for error in errors {
            if let LoadErrorKind::Device { error } = error.kind() {
                keep_stray_error(&self.job.device, (**error).clone());
            }
        }
    }
}

impl Drop for RunningLoad {
    fn drop(&mut self) {
        self.cancel();
    }
}

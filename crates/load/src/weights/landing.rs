//! Tensors as they land.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::job::Job;
use super::stats::LoadStats;
use super::worker::{self, Report};
use super::{LoadConfig, LoadProgress, OnProgress, Tensor, Tensors};
use crate::{Fault, LoadError, TensorInfo};
use pinlane_core::internal::keep_stray_error;

/// A load under way: an iterator over its tensors, in the order in which they are complete.
///
/// Dropped, it stops the load and waits until nothing of it is in flight.
pub struct Landing {
    job: Arc<Job>,
    threads: Vec<JoinHandle<()>>,
    /// How many there were.
    started: usize,
    reports: Receiver<Report>,
    /// Bytes of each tensor that are missing.
    missing: Vec<u64>,
    complete: VecDeque<usize>,
    progress: LoadProgress,
    told: Option<OnProgress>,
    /// An error was given out.
    failed: bool,
}

impl Landing {
    pub(super) fn start(job: Job, config: &LoadConfig) -> Result<Self, LoadError> {
        let job = Arc::new(job);
        let (tell, reports) = mpsc::channel();
        let missing: Vec<_> = job.tensors().iter().map(TensorInfo::len_bytes).collect();
        let empty = |(number, bytes): (usize, &u64)| (*bytes == 0).then_some(number);
        let complete: VecDeque<_> = missing.iter().enumerate().filter_map(empty).collect();
        let mut landing = Self {
            progress: LoadProgress {
                bytes: 0,
                total_bytes: job.total_bytes(),
                tensors: complete.len(),
                total_tensors: missing.len(),
            },
            complete,
            threads: Vec::with_capacity(job.threads),
            started: 0,
            told: config.progress.clone(),
            failed: false,
            missing,
            reports,
            job,
        };
        let wanted = landing.job.threads;
        for number in 0..wanted {
            let (job, tell) = (Arc::clone(&landing.job), tell.clone());
            let thread = std::thread::Builder::new().name(format!("pinlane-load-{number}"));
            let spawned = thread.spawn(move || worker::run(&job, &tell));
            match spawned {
                Ok(thread) => {
                    landing.threads.push(thread);
                    landing.started += 1;
                }
                Err(error) if number == 0 => {
                    return Err(Fault::io("start a thread", &error).into());
                }
                Err(_) => break, // fewer will do
            }
        }
        Ok(landing)
    }

    /// All tensors together, when all are there.
    ///
    /// # Errors
    /// What the first failure was.
    pub fn all(mut self) -> Result<Tensors, LoadError> {
        let mut tensors = Vec::with_capacity(self.missing.len());
        for tensor in &mut self {
            tensors.push(tensor?);
        }
        let stats = self.stats();
        Ok(Tensors::new(tensors, stats))
    }

    /// The next tensor, if it is complete within `patience`. `Pending` if it is not: the load goes
    /// on, and whoever asks can look at other things before asking again.
    pub fn next_within(&mut self, patience: Duration) -> Poll<Option<Result<Tensor, LoadError>>> {
        let began = Instant::now();
        let mut asked = false;
        self.next_by(|reports| {
            let left = patience.saturating_sub(began.elapsed());
            // Reports may come one behind the other for as long as a large tensor takes.
            match std::mem::replace(&mut asked, true) && left.is_zero() {
                true => Err(RecvTimeoutError::Timeout),
                false => reports.recv_timeout(left),
            }
        })
    }

    /// What the load has done so far.
    #[must_use]
    pub fn stats(&self) -> LoadStats {
        LoadStats {
            threads: self.started,
            ..self.job.stats()
        }
    }

    /// How far it has come, as far as reports were taken.
    #[must_use]
    pub fn progress(&self) -> LoadProgress {
        self.progress
    }

    fn landed(&mut self, report: Report) -> Result<(), LoadError> {
        let parts = match report {
            Report::Landed(parts) => parts,
            Report::Failed(error) => return Err(error),
        };
        for part in parts {
            let missing = &mut self.missing[part.tensor];
            *missing -= part.copy.len_bytes;
            if *missing == 0 {
                self.complete.push_back(part.tensor);
                self.progress.tensors += 1;
            }
            self.progress.bytes += part.copy.len_bytes;
        }
        if let Some(told) = &self.told {
            told.tell(self.progress);
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.progress.tensors == self.progress.total_tensors
    }

    /// The next tensor, with reports that are waited for in this way.
    fn next_by(
        &mut self,
        mut wait: impl FnMut(&Receiver<Report>) -> Result<Report, RecvTimeoutError>,
    ) -> Poll<Option<Result<Tensor, LoadError>>> {
        loop {
            if self.failed {
                return Poll::Ready(None);
            }
            if let Some(number) = self.complete.pop_front() {
                return Poll::Ready(Some(Ok(self.job.tensor(number))));
            }
            let report = match wait(&self.reports) {
                Ok(report) => report,
                // All threads have ended.
                Err(RecvTimeoutError::Disconnected) if self.is_complete() => {
                    return Poll::Ready(None);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let says = "it told nothing".to_owned();
                    let error = self.fail(Fault::Panicked { says }.into());
                    return Poll::Ready(Some(Err(error)));
                }
                Err(RecvTimeoutError::Timeout) => return Poll::Pending,
            };
            if let Err(error) = self.landed(report) {
                return Poll::Ready(Some(Err(self.fail(error))));
            }
        }
    }

    /// Stop, and wait until nothing is in flight. What threads have failed with that was not taken.
    fn end(&mut self) -> Vec<LoadError> {
        self.job.stop();
        for thread in self.threads.drain(..) {
            // It has told of its panic.
            let _ = thread.join();
        }
        let failed = |report| match report {
            Report::Landed(_) => None,
            Report::Failed(error) => Some(error),
        };
        self.reports.try_iter().filter_map(failed).collect()
    }

    /// End with the first error, or with a panic, which may be the cause of what others failed with.
    fn fail(&mut self, first: LoadError) -> LoadError {
        self.failed = true;
        let mut errors = vec![first];
        errors.extend(self.end());
        let panicked = |error: &LoadError| matches!(error.fault(), Fault::Panicked { .. });
        let told = errors.iter().position(panicked).unwrap_or(0);
        let told = errors.remove(told);
        self.keep_stray(errors);
        told
    }

    fn keep_stray(&self, errors: Vec<LoadError>) {
        for error in errors {
            if let Fault::Device { error } = error.fault() {
                keep_stray_error(&self.job.device, (**error).clone());
            }
        }
    }
}

impl Iterator for Landing {
    type Item = Result<Tensor, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let forever = |reports: &Receiver<Report>| Ok(reports.recv()?);
        match self.next_by(forever) {
            Poll::Ready(next) => next,
            Poll::Pending => unreachable!("it waits as long as it takes"),
        }
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        let errors = self.end();
        self.keep_stray(errors);
    }
}

impl std::fmt::Debug for Landing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Landing")
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

//! A shape's time by its schedule.

use crate::Profile;
use crate::pipeline::{Job, PlanError, Shape};
use crate::schedule::{HostSpan, Log, Scheduler, Span, Unlogged};

/// Chunks that are scheduled at most; what comes behind goes on as they did.
pub(super) const CHUNKS_MAX: u64 = 512;

/// How a job of very many chunks is cut short.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Chunks that are scheduled.
    chunks: u64,
    /// From which chunk on the steady state is looked at, and over how many at most.
    steady_from: u64,
    steady_at_most: u64,
}

impl Sample {
    /// For what is told.
    pub(super) const FULL: Self = Self {
        chunks: CHUNKS_MAX,
        steady_from: 128,
        steady_at_most: 320,
    };

    /// For what is looked through.
    pub(super) const QUICK: Self = Self {
        chunks: 128,
        steady_from: 40,
        steady_at_most: 64,
    };
}

/// Nanoseconds that a job takes in this shape. Of more than 512 chunks only so many are scheduled,
/// and the rest is taken from the steady state that these have reached.
///
/// # Errors
/// [`PlanError`] with the field that makes no sense.
pub fn predict_ns(job: &Job, profile: &Profile, shape: &Shape) -> Result<u64, PlanError> {
    Predictor::new(profile).ns(job, shape, Sample::FULL)
}

/// Predicts one shape after the other.
pub(super) struct Predictor<'a> {
    profile: &'a Profile,
    scheduler: Scheduler<'a>,
}

impl<'a> Predictor<'a> {
    pub(super) fn new(profile: &'a Profile) -> Self {
        Self {
            profile,
            scheduler: Scheduler::new(profile),
        }
    }

    /// What a job takes in this shape.
    pub(super) fn ns(
        &mut self,
        job: &Job,
        shape: &Shape,
        sample: Sample,
    ) -> Result<u64, PlanError> {
        let cut = shape.cut(job)?;
        let program = shape.program_of_first(job, self.profile, sample.chunks)?;
        if cut.count <= sample.chunks {
            return Ok(self.scheduler.run(&program, &mut Unlogged)?.end_ns);
        }
        let round = common_multiple(shape.streams.into(), shape.ring_slots.into());
        let at_most = sample.steady_at_most;
        let chunks = (at_most / round * round).max(at_most.min(round));
        let mut ends = Ends::of(sample.steady_from, sample.steady_from + chunks);
        let scheduled_ns = self.scheduler.run(&program, &mut ends)?.end_ns;
        let left_bytes = job.bytes_in - sample.chunks * cut.chunk_bytes;
        let steady_ns = ends.last_ns.saturating_sub(ends.first_ns);
        let left_ns = u128::from(steady_ns) * u128::from(left_bytes)
            / (u128::from(chunks) * u128::from(cut.chunk_bytes));
        let left_ns = u64::try_from(left_ns).unwrap_or(u64::MAX);
        Ok(scheduled_ns.saturating_add(left_ns))
    }
}

/// When two chunks were done.
struct Ends {
    first: u32,
    last: u32,
    first_ns: u64,
    last_ns: u64,
}

impl Ends {
    fn of(first: u64, last: u64) -> Self {
        // Both are below the number of chunks that are scheduled.
        let tag = |chunk: u64| u32::try_from(chunk).unwrap_or(u32::MAX);
        Self {
            first: tag(first),
            last: tag(last),
            first_ns: 0,
            last_ns: 0,
        }
    }
}

impl Log for Ends {
    fn span(&mut self, span: Span) {
        if span.tag == self.first {
            self.first_ns = span.end_ns;
        } else if span.tag == self.last {
            self.last_ns = span.end_ns;
        }
    }

    fn host(&mut self, _: HostSpan) {}
}

/// The least number that both divide, neither of which is 0.
fn common_multiple(a: u64, b: u64) -> u64 {
    let (mut divisor, mut rest) = (a, b);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a / divisor * b
}

//! The duration of a job in a shape.

use crate::Profile;
use crate::cost_curve::clamp;
use crate::pipeline::{Job, PlanError, Shape};
use crate::schedule::{HostSpan, NoSpans, Scheduler, Span, SpanSink};

/// Most chunks that are scheduled; the rest is extrapolated.
pub(super) const CHUNKS_MAX: u64 = 512;

/// How much of a job with many chunks is scheduled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Chunks that are scheduled.
    chunks: u64,
    /// First chunk of the steady state, and the number of chunks at most that it is measured over.
    steady_from: u64,
    steady_max: u64,
}

impl Sample {
    /// For results.
    pub(super) const FULL: Self = Self {
        chunks: CHUNKS_MAX,
        steady_from: 128,
        steady_max: 320,
    };

    /// For the search.
    pub(super) const QUICK: Self = Self {
        chunks: 128,
        steady_from: 40,
        steady_max: 64,
    };
}

/// Predicts the duration of a job in this shape. Of more than 512 chunks, the first 512 are
/// scheduled and the rest is extrapolated from their steady state.
///
/// # Errors
/// [`PlanError`] with the invalid field.
pub fn predict_ns(job: &Job, profile: &Profile, shape: &Shape) -> Result<u64, PlanError> {
    Predictor::new(profile).ns(job, shape, Sample::FULL)
}

/// Predicts one shape after the other, reusing its memory.
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

    pub(super) fn ns(
        &mut self,
        job: &Job,
        shape: &Shape,
        sample: Sample,
    ) -> Result<u64, PlanError> {
        let all = shape.chunks(job)?;
        let program = shape.program_of_first(job, self.profile, sample.chunks)?;
        if all.count <= sample.chunks {
            return Ok(self.scheduler.run(&program, &mut NoSpans)?);
        }
        let round = common_multiple(shape.streams.into(), shape.ring_slots.into());
        let most = sample.steady_max;
        let chunks = (most / round * round).max(most.min(round));
        // Tags are chunks, and both are below the number of chunks that are scheduled.
        let mut ends = ChunkEnds {
            first: sample.steady_from as u32,
            last: (sample.steady_from + chunks) as u32,
            ..ChunkEnds::default()
        };
        let scheduled_ns = self.scheduler.run(&program, &mut ends)?;
        let left_bytes = job.bytes_in - sample.chunks * all.chunk_bytes;
        let steady_ns = ends.last_ns.saturating_sub(ends.first_ns);
        let left_ns = u128::from(steady_ns) * u128::from(left_bytes)
            / (u128::from(chunks) * u128::from(all.chunk_bytes));
        Ok(scheduled_ns.saturating_add(clamp(left_ns)))
    }
}

/// Records when two chunks are done.
#[derive(Default)]
struct ChunkEnds {
    first: u32,
    last: u32,
    first_ns: u64,
    last_ns: u64,
}

impl SpanSink for ChunkEnds {
    fn span(&mut self, span: Span) {
        if span.tag == self.first {
            self.first_ns = span.end_ns;
        } else if span.tag == self.last {
            self.last_ns = span.end_ns;
        }
    }

    fn host(&mut self, _: HostSpan) {}
}

/// The least common multiple of two numbers greater than 0.
fn common_multiple(a: u64, b: u64) -> u64 {
    let (mut divisor, mut rest) = (a, b);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a / divisor * b
}

//! The model's answer as a report.

use pinlane_model::Profile;
use pinlane_model::pipeline::{Job, Memory, PlanError, Shape};
use pinlane_model::planner::{Advice, Alternative, Limits, Plan, best};
use pinlane_report::timeline::Chart;
use pinlane_report::{Origin, PlanAdvice, PlanAlternative, PlanJob, PlanShape};

use super::schedule_timeline;

/// Savings below 1 in this many are not worth advice.
const WORTHWHILE: u64 = 50;

pub(super) struct Subject<'a> {
    pub(super) job: &'a Job,
    pub(super) profile: &'a Profile,
    pub(super) limits: &'a Limits,
}

impl Subject<'_> {
    pub(super) fn job(&self) -> Result<PlanJob, PlanError> {
        let job = self.job;
        Ok(PlanJob {
            bytes_in: job.bytes_in,
            bytes_out: job.bytes_out,
            kernel_ns: job.kernel.ns(job.bytes_in)?,
            input: job.input,
            output: job.output,
        })
    }

    pub(super) fn shape(&self, job: &Job, shape: &Shape) -> Result<PlanShape, PlanError> {
        let uses_lanes =
            job.input == Memory::Express || (job.output == Memory::Express && job.bytes_out > 0);
        let lanes = self.profile.express.as_ref().map(|express| express.lanes);
        Ok(PlanShape {
            chunks: job.bytes_in.div_ceil(shape.chunk_bytes.max(1)),
            chunk_bytes: shape.chunk_bytes.min(job.bytes_in),
            streams: shape.streams,
            order: shape.order.name().to_owned(),
            ring_slots: shape.ring_slots,
            lanes: lanes.filter(|_| uses_lanes),
            device_bytes: shape.device_bytes(job)?,
            pinned_bytes: shape.pinned_bytes(job)?,
        })
    }

    /// What would help, or that the given shape is not the best.
    pub(super) fn advice(&self, plan: &Plan, given_ns: Option<u64>) -> PlanAdvice {
        let saves_ns = given_ns.map_or(0, |ns| ns.saturating_sub(plan.predicted_ns));
        if given_ns.is_some_and(|ns| saves_ns > ns / WORTHWHILE) {
            return PlanAdvice::TakeBest { saves_ns };
        }
        match plan.advice {
            Advice::Pin { saves_ns } => PlanAdvice::Pin {
                saves_ns,
                pinning_ns: self.pinning_ns(),
            },
            Advice::MoreStreams { saves_ns } => PlanAdvice::MoreStreams { saves_ns },
            Advice::LargerChunks { saves_ns } => PlanAdvice::LargerChunks { saves_ns },
            Advice::FasterKernel { saves_ns } => PlanAdvice::FasterKernel { saves_ns },
            _ if given_ns.is_some() => PlanAdvice::GivenIsGood,
            Advice::NothingLinkIsFull => PlanAdvice::LinkIsFull,
            _ => PlanAdvice::Nothing,
        }
    }

    /// The time to pin the memory that is not pinned.
    fn pinning_ns(&self) -> u64 {
        let job = self.job;
        let register = &self.profile.host_memory.register;
        let ns = |memory, bytes| match memory {
            Memory::Pageable | Memory::Express if bytes > 0 => register.ns(bytes),
            _ => 0,
        };
        ns(job.input, job.bytes_in).saturating_add(ns(job.output, job.bytes_out))
    }

    /// Alternatives to the best plan: those of the model, and the same job in other memory.
    pub(super) fn alternatives(&self, plan: &Plan) -> Result<Vec<PlanAlternative>, PlanError> {
        let best_ns = plan.predicted_ns;
        let mut all = Vec::new();
        for Alternative { name, shape, ns } in &plan.alternatives {
            if *shape != Some(plan.shape) {
                let shape = shape.map(|shape| self.shape(self.job, &shape));
                all.push(PlanAlternative::new(name, shape.transpose()?, *ns, best_ns));
            }
        }
        for (name, memory) in [
            ("pipelined, pageable", Memory::Pageable),
            ("pipelined, express", Memory::Express),
            ("pipelined, pinned", Memory::Pinned),
        ] {
            let job = in_memory(self.job, memory);
            if job == *self.job || (memory == Memory::Express && self.profile.express.is_none()) {
                continue;
            }
            // Fails if the limits leave no room for this memory.
            if let Ok(plan) = best(&job, self.profile, self.limits) {
                let shape = Some(self.shape(&job, &plan.shape)?);
                all.push(PlanAlternative::new(
                    name,
                    shape,
                    plan.predicted_ns,
                    best_ns,
                ));
            }
        }
        Ok(all)
    }

    pub(super) fn chart(
        &self,
        origin: &Origin,
        given: Option<Shape>,
        best: &Shape,
    ) -> anyhow::Result<Chart> {
        let run = |label: &str, shape: &Shape| {
            let title = self.shape(self.job, shape)?.title();
            schedule_timeline::pipelined(label, &title, self.job, self.profile, shape)
        };
        let title = format!("Predicted timeline: {}", self.job()?.title());
        let best = run("Best", best)?;
        let ((first, first_is_whole), second) = match given {
            Some(given) => (run("Given", &given)?, Some(best)),
            None => (best, None),
        };
        let mut runs = vec![first];
        // An incomplete run cannot be compared with complete ones.
        if first_is_whole {
            runs.insert(0, schedule_timeline::serial(self.job, self.profile)?);
            runs.extend(second.filter(|(_, is_whole)| *is_whole).map(|(run, _)| run));
        }
        Ok(Chart::new(&title, origin.clone(), runs))
    }
}

/// The job with its host memory replaced by this kind.
fn in_memory(job: &Job, memory: Memory) -> Job {
    let changed = |it, bytes| match it {
        Memory::Device => Memory::Device,
        // Never copied.
        other if bytes == 0 => other,
        _ => memory,
    };
    Job {
        input: changed(job.input, job.bytes_in),
        output: changed(job.output, job.bytes_out),
        ..*job
    }
}

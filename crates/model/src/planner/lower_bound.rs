//! What no schedule of a shape can beat.

use crate::cost_curve::clamp;
use crate::pipeline::{Chunks, Job, Memory, PlanError, Shape};
use crate::{Direction, HostKind, Profile};

/// Lower bounds for all shapes with the same chunk size.
#[derive(Clone, Copy, Debug)]
pub(super) struct LowerBound {
    /// For every shape.
    pub(super) ns: u64,
    /// Time that a chunk occupies its slot, at least.
    slot_ns: u64,
    chunks: u64,
}

impl LowerBound {
    pub(super) fn new(job: &Job, profile: &Profile, chunks: &Chunks) -> Result<Self, PlanError> {
        // At most what any chunk but the last takes.
        let (bytes, last) = (chunks.chunk_bytes, chunks.count - 1);
        let full = ChunkTimes::new(job, profile, bytes, chunks.output_of(bytes))?;
        let last = ChunkTimes::new(job, profile, chunks.bytes_in(last), chunks.bytes_out(last))?;
        let sum = |part: fn(&ChunkTimes) -> u64| {
            let all_full = part(&full).saturating_mul(chunks.count - 1);
            all_full.saturating_add(part(&last))
        };
        // A single chunk is both the first and the last.
        let first = if chunks.count == 1 { last } else { full };
        let before_copy_out_ns = match full.tail_ns.max(last.tail_ns) {
            0 => first.before_copy_out_ns(),
            // A small last chunk may overtake, since kernels run side by side.
            _ => first.before_copy_out_ns().min(last.before_copy_out_ns()),
        };
        let link_ns = both_ways_ns(
            sum(|it| it.copy_in_ns),
            sum(|it| it.copy_out_ns),
            before_copy_out_ns,
            last.after_copy_in_ns(),
            profile.both_ways_percent,
        );
        let compute_ns = total([
            first.before_kernel_ns(),
            sum(|it| it.kernel_ns),
            last.after_kernel_ns(),
        ]);
        let express_ns = match &profile.express {
            Some(express) if job.uses_express() => both_ways_ns(
                sum(|it| it.express_in_ns),
                sum(|it| it.express_out_ns),
                before_copy_out_ns.saturating_add(last.copy_out_ns),
                last.after_express_in_ns(),
                express.both_percent(chunks.most_bytes()),
            ),
            _ => 0,
        };
        let host_ns = sum(|it| it.host_ns);
        Ok(Self {
            ns: link_ns.max(compute_ns).max(express_ns).max(host_ns),
            slot_ns: full.in_slot_ns(),
            chunks: chunks.count,
        })
    }

    /// For this shape: a chunk starts after the previous one of its slot.
    pub(super) fn of(&self, shape: &Shape) -> u64 {
        let rounds = (self.chunks - 1) / u64::from(shape.ring_slots.max(1));
        self.ns.max(rounds.saturating_mul(self.slot_ns))
    }
}

/// Durations of one chunk's stages, each alone.
#[derive(Clone, Copy, Debug)]
struct ChunkTimes {
    express_in_ns: u64,
    copy_in_ns: u64,
    /// On the engine, and beyond that.
    kernel_ns: u64,
    tail_ns: u64,
    copy_out_ns: u64,
    express_out_ns: u64,
    host_ns: u64,
    /// From one engine to another.
    handover_ns: u64,
}

impl ChunkTimes {
    fn new(job: &Job, profile: &Profile, bytes_in: u64, out: u64) -> Result<Self, PlanError> {
        let copy_ns = |direction, memory: Memory, bytes| match memory.host_kind() {
            Some(kind) if bytes > 0 => profile.copy_ns(direction, kind, bytes),
            _ => 0,
        };
        let express_ns = |direction, memory, bytes| match &profile.express {
            Some(express) if memory == Memory::Express => express.ns(direction, bytes),
            _ => 0,
        };
        let copy_in_ns = copy_ns(Direction::HostToDevice, job.input, bytes_in);
        let copy_out_ns = copy_ns(Direction::DeviceToHost, job.output, out);
        let submit_ns = profile.calls.submit_ns;
        let copying_ns = |memory: Memory, ns| match memory.host_kind() {
            // Pageable copies block the submitting thread.
            Some(HostKind::Pageable) => submit_ns.saturating_add(ns),
            Some(HostKind::Pinned) => submit_ns,
            None => 0,
        };
        // The thread that copies a chunk in makes it first. With the express lane that is another one.
        let making_ns = match job.express_in() {
            true => 0,
            false => job.host_ns_per_chunk,
        };
        let host_ns = total([
            submit_ns,
            making_ns,
            copying_ns(job.input, copy_in_ns),
            copying_ns(job.output, copy_out_ns),
        ]);
        let (tail_ns, busy_ns) = job.kernel.tail_and_busy_ns(bytes_in)?;
        Ok(Self {
            express_in_ns: express_ns(Direction::HostToDevice, job.input, bytes_in),
            copy_in_ns,
            kernel_ns: profile.kernel_ns(0, busy_ns),
            tail_ns,
            copy_out_ns,
            express_out_ns: express_ns(Direction::DeviceToHost, job.output, out),
            host_ns,
            handover_ns: profile.device.handover_ns,
        })
    }

    /// The hand-over to or from a copy, if there is one.
    fn handover(&self, copy_ns: u64) -> u64 {
        if copy_ns == 0 { 0 } else { self.handover_ns }
    }

    fn before_kernel_ns(&self) -> u64 {
        total([
            self.express_in_ns,
            self.copy_in_ns,
            self.handover(self.copy_in_ns),
        ])
    }

    fn before_copy_out_ns(&self) -> u64 {
        let before_kernel_ns = self.before_kernel_ns();
        let handover_ns = self.handover(self.copy_out_ns);
        total([before_kernel_ns, self.kernel_ns, self.tail_ns, handover_ns])
    }

    /// The express lane works while the slot holds another chunk.
    fn in_slot_ns(&self) -> u64 {
        let without_express = Self {
            express_in_ns: 0,
            ..*self
        };
        let before_ns = without_express.before_copy_out_ns();
        before_ns.saturating_add(self.copy_out_ns)
    }

    fn after_kernel_ns(&self) -> u64 {
        let handover_ns = self.handover(self.copy_out_ns);
        total([self.copy_out_ns, self.express_out_ns, handover_ns])
    }

    fn after_express_in_ns(&self) -> u64 {
        match self.express_in_ns {
            0 => 0,
            _ => total([self.kernel_ns, self.tail_ns, self.after_kernel_ns()]),
        }
    }

    fn after_copy_in_ns(&self) -> u64 {
        let computing_ns = total([self.kernel_ns, self.tail_ns, self.after_kernel_ns()]);
        match self.copy_in_ns {
            0 => 0,
            _ => self.handover_ns.saturating_add(computing_ns),
        }
    }
}

fn total<const N: usize>(parts_ns: [u64; N]) -> u64 {
    parts_ns.into_iter().fold(0, u64::saturating_add)
}

/// A bound for two directions that slow each other: the second starts after `lead_ns`, and `trail_ns`
/// follow the end of the first. If both are busy for `both_ns`, each loses `both_ns` · (1 - 100 /
/// percent). So the whole takes at least the longer one plus that loss, and at least the sum of both
/// minus `both_ns`. The maximum of the two is least where they are equal.
fn both_ways_ns(first_ns: u64, second_ns: u64, lead_ns: u64, trail_ns: u64, percent: u64) -> u64 {
    let apart_ns = lead_ns
        .saturating_add(second_ns)
        .max(first_ns.saturating_add(trail_ns));
    let sum_ns = first_ns.saturating_add(second_ns);
    let shared_ns = u128::from(sum_ns.saturating_sub(apart_ns));
    let lost = u128::from(percent.clamp(100, 200) - 100);
    apart_ns.saturating_add(clamp(shared_ns * lost / 100))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::{KernelTime, PipelineOrder};
    use crate::planner::predict_ns;

    /// A bound that is too high would exclude the best shape.
    #[test]
    fn no_schedule_beats_its_bound() {
        use Memory::{Device, Express, Pageable, Pinned};
        let memories = [Pinned, Pageable, Express, Device];
        let mut profiles: Vec<_> = ["pcie3-x16", "pcie4-x16", "h200"]
            .into_iter()
            .filter_map(Profile::builtin)
            .collect();
        let mut slowed = profiles[2].clone();
        slowed.both_ways_percent = 170;
        let mut taking_turns = profiles[2].clone();
        taking_turns.both_ways_percent = 260;
        profiles.extend([slowed, taking_turns]);
        for profile in &profiles {
            for (index, input) in memories.into_iter().enumerate() {
                for output in memories {
                    check(profile, input, output, KERNELS[index]);
                }
            }
        }
    }

    const KERNELS: [KernelTime; 4] = [
        KernelTime {
            fixed_ns: 500,
            least_ns: 0,
            ns_per_gib: 0,
            idle_percent: 0,
        },
        KernelTime {
            fixed_ns: 500,
            least_ns: 0,
            ns_per_gib: 30_000_000,
            idle_percent: 0,
        },
        KernelTime {
            fixed_ns: 0,
            least_ns: 200_000,
            ns_per_gib: 30_000_000,
            idle_percent: 0,
        },
        KernelTime {
            fixed_ns: 100,
            least_ns: 50_000,
            ns_per_gib: 60_000_000,
            idle_percent: 75,
        },
    ];

    fn check(profile: &Profile, input: Memory, output: Memory, kernel: KernelTime) {
        for host_ns_per_chunk in [100, 1_000_000] {
            let job = Job {
                bytes_in: 100_000_007,
                bytes_out: 70_000_001,
                kernel,
                input,
                output,
                host_ns_per_chunk,
            };
            check_job(profile, &job);
        }
    }

    fn check_job(profile: &Profile, job: &Job) {
        for chunk_bytes in [400_000, 3_000_000, 40_000_000, 100_000_007] {
            for (order, streams, ring_slots) in [
                (PipelineOrder::DepthFirst, 1, 1),
                (PipelineOrder::DepthFirst, 3, 3),
                (PipelineOrder::BreadthFirst, 2, 4),
                (PipelineOrder::StageStreams, 3, 2),
                (PipelineOrder::StageStreams, 3, 8),
            ] {
                let shape = Shape {
                    chunk_bytes,
                    streams,
                    order,
                    ring_slots,
                };
                let chunks = shape.chunks(job).expect("a valid shape");
                let bound = LowerBound::new(job, profile, &chunks).expect("a valid job");
                let least_ns = bound.of(&shape);
                let found_ns = predict_ns(job, profile, &shape).expect("a valid program");
                assert!(
                    least_ns <= found_ns,
                    "{}: {job:?}, {shape:?}: {found_ns} beats {least_ns}",
                    profile.name
                );
            }
        }
    }
}

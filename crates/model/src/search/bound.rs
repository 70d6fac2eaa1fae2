//! What no schedule of a shape can beat.

use crate::pipeline::{Cut, Job, Memory, PlanError, Shape};
use crate::{Direction, HostKind, Profile};

/// Times that hold for every shape with the same chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// No schedule takes less.
    pub(super) least_ns: u64,
    /// One chunk from its copy in to its copy out, alone.
    chain_ns: u64,
    chunks: u64,
}

impl Bound {
    pub(super) fn new(job: &Job, profile: &Profile, cut: &Cut) -> Result<Self, PlanError> {
        let chunk = Chunk::full(job, profile, cut)?;
        let last = Chunk::last(job, profile, cut)?;
        let handover_ns = profile.device.handover_ns;
        let sum = |part: fn(&Chunk) -> u64| {
            part(&chunk)
                .saturating_mul(cut.count - 1)
                .saturating_add(part(&last))
        };
        let (up_ns, down_ns) = (sum(|it| it.up_ns), sum(|it| it.down_ns));
        // A single chunk is the first and the last.
        let first = if cut.count == 1 { last } else { chunk };
        let lead_ns = first.before_down_ns(handover_ns);
        let trail_ns = last.after_up_ns(handover_ns);
        let link_ns = two_ways_ns(up_ns, down_ns, lead_ns, trail_ns, profile.both_ways_percent);
        let compute_ns = first
            .before_kernel_ns(handover_ns)
            .saturating_add(sum(|it| it.kernel_ns))
            .saturating_add(last.after_kernel_ns(handover_ns));
        let lanes_ns = match &profile.express {
            Some(express) if job.uses_lanes() => two_ways_ns(
                sum(|it| it.fill_ns),
                sum(|it| it.empty_ns),
                lead_ns.saturating_add(first.down_ns),
                last.after_fill_ns(handover_ns),
                express.both_percent(cut.most_bytes()),
            ),
            _ => 0,
        };
        let host_ns = sum(|it| it.host_ns);
        Ok(Self {
            least_ns: link_ns.max(compute_ns).max(lanes_ns).max(host_ns),
            chain_ns: chunk.on_device_ns(handover_ns),
            chunks: cut.count,
        })
    }

    /// No schedule of this shape takes less: a chunk starts behind the one that had its slot.
    pub(super) fn of(&self, shape: &Shape) -> u64 {
        let rounds = (self.chunks - 1) / u64::from(shape.ring_slots.max(1));
        self.least_ns.max(rounds.saturating_mul(self.chain_ns))
    }
}

/// What the steps of one chunk take alone.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    fill_ns: u64,
    up_ns: u64,
    /// Before the kernel has the engine.
    lead_ns: u64,
    kernel_ns: u64,
    down_ns: u64,
    empty_ns: u64,
    host_ns: u64,
}

impl Chunk {
    /// Every chunk but the last takes at least as much.
    fn full(job: &Job, profile: &Profile, cut: &Cut) -> Result<Self, PlanError> {
        let out = u128::from(job.bytes_out) * u128::from(cut.chunk_bytes);
        let least_out = u64::try_from(out / u128::from(job.bytes_in)).unwrap_or(u64::MAX);
        Self::new(job, profile, cut.chunk_bytes, least_out)
    }

    fn last(job: &Job, profile: &Profile, cut: &Cut) -> Result<Self, PlanError> {
        let index = cut.count - 1;
        Self::new(job, profile, cut.bytes_in(index), cut.bytes_out(index))
    }

    fn new(job: &Job, profile: &Profile, bytes_in: u64, out: u64) -> Result<Self, PlanError> {
        let copy_ns = |direction, memory: Memory, bytes| match memory.host_kind() {
            Some(kind) if bytes > 0 => profile.copy_ns(direction, kind, bytes),
            _ => 0,
        };
        let up_ns = copy_ns(Direction::HostToDevice, job.input, bytes_in);
        let down_ns = copy_ns(Direction::DeviceToHost, job.output, out);
        let lanes_ns = |direction, memory, bytes| match &profile.express {
            Some(express) if memory == Memory::Express => express.ns(direction, bytes),
            _ => 0,
        };
        let submits = [job.input, job.output].map(|memory| memory.host_kind().is_some());
        let submits = 1 + submits.into_iter().map(u64::from).sum::<u64>();
        let mut host_ns = profile.calls.submit_ns.saturating_mul(submits);
        host_ns = host_ns.saturating_add(job.host_ns_per_chunk);
        // Pageable copies keep the launching thread.
        for (memory, ns) in [(job.input, up_ns), (job.output, down_ns)] {
            if memory.host_kind() == Some(HostKind::Pageable) {
                host_ns = host_ns.saturating_add(ns);
            }
        }
        Ok(Self {
            fill_ns: lanes_ns(Direction::HostToDevice, job.input, bytes_in),
            up_ns,
            lead_ns: job.kernel.fixed_ns,
            kernel_ns: profile.kernel_ns(0, job.kernel.moving_ns(bytes_in)?),
            down_ns,
            empty_ns: lanes_ns(Direction::DeviceToHost, job.output, out),
            host_ns,
        })
    }

    fn before_kernel_ns(&self, handover_ns: u64) -> u64 {
        let up_ns = self.fill_ns.saturating_add(self.up_ns);
        let up_ns = up_ns.saturating_add(self.lead_ns);
        match self.up_ns {
            0 => up_ns,
            _ => up_ns.saturating_add(handover_ns),
        }
    }

    fn before_down_ns(&self, handover_ns: u64) -> u64 {
        let kernel_ns = self.before_kernel_ns(handover_ns);
        let kernel_ns = kernel_ns.saturating_add(self.kernel_ns);
        match self.down_ns {
            0 => kernel_ns,
            _ => kernel_ns.saturating_add(handover_ns),
        }
    }

    /// A ring is filled and emptied while the slot has another chunk.
    fn on_device_ns(&self, handover_ns: u64) -> u64 {
        let alone = Self {
            fill_ns: 0,
            ..*self
        };
        let before_ns = alone.before_down_ns(handover_ns);
        before_ns.saturating_add(self.down_ns)
    }

    fn after_kernel_ns(&self, handover_ns: u64) -> u64 {
        let down_ns = self.down_ns.saturating_add(self.empty_ns);
        match self.down_ns {
            0 => down_ns,
            _ => down_ns.saturating_add(handover_ns),
        }
    }

    fn after_fill_ns(&self, handover_ns: u64) -> u64 {
        match self.fill_ns {
            0 => 0,
            _ => self
                .lead_ns
                .saturating_add(self.kernel_ns)
                .saturating_add(self.after_kernel_ns(handover_ns)),
        }
    }

    fn after_up_ns(&self, handover_ns: u64) -> u64 {
        if self.up_ns == 0 {
            return 0;
        }
        let kernel_ns = self.kernel_ns.saturating_add(handover_ns);
        let kernel_ns = kernel_ns.saturating_add(self.lead_ns);
        kernel_ns.saturating_add(self.after_kernel_ns(handover_ns))
    }
}

/// Two directions that slow each other: `lead_ns` pass before the second begins, `trail_ns` after
/// the first has ended. With `both` the time in which both are busy, each loses `both` (1 - 100 /
/// percent) of it. So the whole takes at least the longer one with that loss, and at least both
/// less `both`; the least of the greater of these is where the two meet.
fn two_ways_ns(first_ns: u64, second_ns: u64, lead_ns: u64, trail_ns: u64, percent: u64) -> u64 {
    let apart_ns = lead_ns
        .saturating_add(second_ns)
        .max(first_ns.saturating_add(trail_ns));
    let behind_ns = first_ns.saturating_add(second_ns);
    let shared_ns = u128::from(behind_ns.saturating_sub(apart_ns));
    let lost = u128::from(percent.clamp(100, 200) - 100);
    let lost_ns = u64::try_from(shared_ns * lost / 100).unwrap_or(u64::MAX);
    apart_ns.saturating_add(lost_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::{KernelTime, Order};
    use crate::search::predict_ns;

    /// A bound that is too high would hide the best shape.
    #[test]
    fn no_schedule_beats_its_bound() {
        let memories = [
            Memory::Pinned,
            Memory::Pageable,
            Memory::Express,
            Memory::Device,
        ];
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
                    check(profile, input, output, [0, 30_000_000][index % 2]);
                }
            }
        }
    }

    fn check(profile: &Profile, input: Memory, output: Memory, ns_per_gib: u64) {
        let job = Job {
            bytes_in: 100_000_007,
            bytes_out: 70_000_001,
            kernel: KernelTime {
                fixed_ns: 500,
                ns_per_gib,
            },
            input,
            output,
            host_ns_per_chunk: 100,
        };
        for chunk_bytes in [400_000, 3_000_000, 40_000_000, 100_000_007] {
            for (order, streams, ring_slots) in [
                (Order::DepthFirst, 1, 1),
                (Order::DepthFirst, 3, 3),
                (Order::BreadthFirst, 2, 4),
                (Order::StageStreams, 3, 2),
                (Order::StageStreams, 3, 8),
            ] {
                let shape = Shape {
                    chunk_bytes,
                    streams,
                    order,
                    ring_slots,
                };
                let cut = shape.cut(&job).expect("a shape that makes sense");
                let bound = Bound::new(&job, profile, &cut).expect("a job that makes sense");
                let least_ns = bound.of(&shape);
                let found_ns = predict_ns(&job, profile, &shape).expect("it can run");
                assert!(
                    least_ns <= found_ns,
                    "{}: {job:?}, {shape:?}: {found_ns} beats {least_ns}",
                    profile.name
                );
            }
        }
    }
}

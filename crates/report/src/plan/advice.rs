//! What limits a plan, and what would help.

use pinlane_model::planner::Resource;
use serde::Serialize;

use crate::format::{duration, percent};

/// What limits a plan.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct PlanBottleneck {
    /// The busiest part, or latency.
    pub part: Resource,
    /// Busy share of the busiest part, from 0 to 1.
    pub busy_share: f64,
}

impl PlanBottleneck {
    pub(super) fn sentence(&self) -> String {
        let busy = percent(self.busy_share);
        let part = match self.part {
            Resource::HostToDevice => "the link, host to device",
            Resource::DeviceToHost => "the link, device to host",
            Resource::Compute => "the kernel",
            Resource::Staging => "the lanes that stage between pageable and pinned memory",
            Resource::Host => "the host thread that submits and copies",
            Resource::Latency => {
                return format!("latency: no part is busy for more than {busy} of the time");
            }
        };
        format!("{part}, busy {busy} of the time")
    }
}

/// What would help.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PlanAdvice {
    /// Use the best shape instead of the requested one.
    TakeBest {
        /// Time saved.
        saves_ns: u64,
    },
    /// Nothing: the requested shape is as good as the best.
    GivenIsGood,
    /// Pin all input and output memory.
    Pin {
        /// Time saved per run.
        saves_ns: u64,
        /// One-time cost of pinning.
        pinning_ns: u64,
    },
    /// More streams.
    MoreStreams {
        /// Time saved.
        saves_ns: u64,
    },
    /// Larger chunks, with more memory.
    LargerChunks {
        /// Time saved.
        saves_ns: u64,
    },
    /// A faster kernel.
    FasterKernel {
        /// Time that an empty kernel would save.
        saves_ns: u64,
    },
    /// Nothing: the link is busy all the time.
    LinkIsFull,
    /// Nothing known to the model.
    Nothing,
}

impl PlanAdvice {
    /// The advice as a sentence, for a plan that takes `best_ns`.
    #[must_use]
    pub fn sentence(self, best_ns: u64) -> String {
        let best = duration(best_ns);
        let saving = |what: &str, saves_ns: u64| {
            format!("{what}: it saves {} of {best}.", duration(saves_ns))
        };
        match self {
            Self::TakeBest { saves_ns } => format!(
                "use the best shape: it saves {} of {}.",
                duration(saves_ns),
                duration(best_ns.saturating_add(saves_ns))
            ),
            Self::GivenIsGood => {
                "keep the given shape: no other is more than 2% faster.".to_owned()
            }
            Self::Pin {
                saves_ns,
                pinning_ns,
            } => format!(
                "pin the host memory: it saves {} of {best} per run and costs {} once, so it pays off {}.",
                duration(saves_ns),
                duration(pinning_ns),
                payoff(saves_ns, pinning_ns)
            ),
            Self::MoreStreams { saves_ns } => saving("allow more streams", saves_ns),
            Self::LargerChunks { saves_ns } => {
                saving("allow more memory, for larger chunks", saves_ns)
            }
            Self::FasterKernel { saves_ns } => format!(
                "make the kernel faster: it can save up to {} of {best}.",
                duration(saves_ns)
            ),
            Self::LinkIsFull => "none: the link is saturated.".to_owned(),
            Self::Nothing => "none: no change known to the model helps much.".to_owned(),
        }
    }
}

fn payoff(saves_ns: u64, once_ns: u64) -> String {
    match once_ns / saves_ns.max(1) + 1 {
        1 => "immediately".to_owned(),
        runs => format!("from run {runs}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinning_pays_off_once_it_saved_more_than_it_cost() {
        assert_eq!(payoff(100, 99), "immediately");
        assert_eq!(payoff(100, 100), "from run 2");
        assert_eq!(payoff(100, 250), "from run 3");
        assert_eq!(payoff(0, 1), "from run 2");
    }
}

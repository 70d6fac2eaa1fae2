//! What limits a plan, and what would help.

use serde::Serialize;

use crate::timeline::layout::words::{duration, percent};

/// A part that a job needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanPart {
    /// The link towards the device.
    HostToDevice,
    /// The link towards the host.
    DeviceToHost,
    /// The compute engine.
    Compute,
    /// The lanes that fill and empty rings.
    Staging,
    /// The launching thread.
    Host,
    /// None of them: all wait for each other.
    Latency,
}

/// What limits a plan.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct PlanBottleneck {
    /// The part.
    pub part: PlanPart,
    /// How much of the time the busiest part is busy, 0 to 1.
    pub busy_share: f64,
}

impl PlanBottleneck {
    /// The part in words, and how busy it is.
    pub(super) fn sentence(&self) -> String {
        let busy = percent(self.busy_share);
        let part = match self.part {
            PlanPart::HostToDevice => "the link, host to device",
            PlanPart::DeviceToHost => "the link, device to host",
            PlanPart::Compute => "the kernel",
            PlanPart::Staging => "the lanes that copy between ordinary and pinned memory",
            PlanPart::Host => "the host thread that submits and copies",
            PlanPart::Latency => {
                return format!("latency: nothing is busy for more than {busy} of the time");
            }
        };
        format!("{part}, busy {busy} of the time")
    }
}

/// What would help.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PlanAdvice {
    /// Take the best shape instead of the one that was asked for.
    TakeBest {
        /// Time that this saves.
        saves_ns: u64,
    },
    /// Nothing: what was asked for is as good as the best.
    GivenIsGood,
    /// All of input and output in pinned memory.
    Pin {
        /// Time that this saves each time.
        saves_ns: u64,
        /// What pinning takes once.
        pinning_ns: u64,
    },
    /// More streams.
    MoreStreams {
        /// Time that this saves.
        saves_ns: u64,
    },
    /// Larger chunks, which need more memory.
    LargerChunks {
        /// Time that this saves.
        saves_ns: u64,
    },
    /// A faster kernel.
    FasterKernel {
        /// Time that a kernel without any work would save.
        saves_ns: u64,
    },
    /// Nothing: the link is busy all the time.
    LinkIsFull,
    /// Nothing that the model knows of.
    Nothing,
}

impl PlanAdvice {
    /// The advice in one sentence, for a plan that takes so long.
    pub(super) fn sentence(self, best_ns: u64) -> String {
        let best = duration(best_ns);
        match self {
            Self::TakeBest { saves_ns } => format!(
                "take the best shape: it saves {} of {}.",
                duration(saves_ns),
                duration(best_ns.saturating_add(saves_ns))
            ),
            Self::GivenIsGood => "keep the given shape: none is better by 2%.".to_owned(),
            Self::Pin {
                saves_ns,
                pinning_ns,
            } => format!(
                "pin the host memory: it saves {} of {best} each time and costs {} once, so it \
                 pays {}.",
                duration(saves_ns),
                duration(pinning_ns),
                pays(saves_ns, pinning_ns)
            ),
            Self::MoreStreams { saves_ns } => format!(
                "allow more streams: it saves {} of {best}.",
                duration(saves_ns)
            ),
            Self::LargerChunks { saves_ns } => format!(
                "allow more memory, for larger chunks: it saves {} of {best}.",
                duration(saves_ns)
            ),
            Self::FasterKernel { saves_ns } => format!(
                "make the kernel faster: it can save up to {} of {best}.",
                duration(saves_ns)
            ),
            Self::LinkIsFull => "none: the link is full.".to_owned(),
            Self::Nothing => "none: nothing that the model knows of helps much.".to_owned(),
        }
    }
}

fn pays(saves_ns: u64, once_ns: u64) -> String {
    match once_ns / saves_ns.max(1) + 1 {
        1 => "at once".to_owned(),
        runs => format!("from run {runs} on"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinning_pays_once_it_has_saved_more_than_it_cost() {
        assert_eq!(pays(100, 99), "at once");
        assert_eq!(pays(100, 100), "from run 2 on");
        assert_eq!(pays(100, 250), "from run 3 on");
        assert_eq!(pays(0, 1), "from run 2 on");
    }
}

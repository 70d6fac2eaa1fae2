//! Which part of the samples was for this process.

use serde::Serialize;

use super::job::counted;
use crate::timeline::layout::words::clean;

/// One rank of all that share the dataset.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FeedShard {
    /// Which one, from 0.
    pub rank: u64,
    /// How many there are.
    pub world: u64,
    /// Who said so: flags, or a launcher's variables. None where nobody did, so that all samples were
    /// for this process.
    pub from: Vec<String>,
    /// Samples of an epoch that come more than once, over all ranks, so that each has as many.
    pub padding_samples: u64,
}

impl FeedShard {
    /// A process that is alone.
    #[must_use]
    pub fn whole() -> Self {
        Self {
            rank: 0,
            world: 1,
            from: Vec::new(),
            padding_samples: 0,
        }
    }

    /// Which rank it is, in one line without its end; `None` where there was no talk of ranks.
    pub(super) fn line(&self) -> Option<String> {
        if self.world <= 1 && self.from.is_empty() {
            return None;
        }
        let mut line = format!("Rank {} of {}", self.rank, self.world);
        if !self.from.is_empty() {
            line.push_str(&format!(", as {} say", clean(&self.from.join(" and "))));
        }
        if self.padding_samples > 0 {
            let (again, come) = match self.padding_samples {
                1 => (counted(1, "sample"), "comes"),
                more => (counted(more, "sample"), "come"),
            };
            line.push_str(&format!(
                "; {again} of an epoch {come} again, so that all ranks have as many"
            ));
        }
        Some(line)
    }
}

//! Where a budget's limit comes from.

use std::sync::{LazyLock, OnceLock};

use super::machine::Machine;
use super::setting;
use crate::Result;

/// Fraction of available memory to use: half stays free for everything else.
const SHARE: u64 = 2;

/// How a limit is determined.
pub(super) enum Rule {
    Fixed(u64),
    /// From the environment and the machine, read on first use.
    Process {
        sources: Box<dyn Sources>,
        found: OnceLock<Result<Limit>>,
    },
}

/// Inputs to the limit of a process.
pub(super) trait Sources: Send + Sync {
    /// An environment variable.
    fn variable(&self, name: &str) -> Option<String>;

    /// Memory currently available, if the system reports it.
    fn available_bytes(&self) -> Option<u64>;
}

#[derive(Clone, Copy)]
pub(super) struct Limit {
    pub(super) bytes: u64,
    /// The limit is the default, so currently available memory counts too.
    by_default: bool,
}

impl Rule {
    pub(super) fn of_process() -> Self {
        Self::from_sources(ThisProcess)
    }

    pub(super) fn from_sources(sources: impl Sources + 'static) -> Self {
        Self::Process {
            sources: Box::new(sources),
            found: OnceLock::new(),
        }
    }

    pub(super) fn limit(&self) -> Result<Limit> {
        match self {
            Self::Fixed(bytes) => Ok(Limit {
                bytes: *bytes,
                by_default: false,
            }),
            Self::Process { sources, found } => found.get_or_init(|| find(&**sources)).clone(),
        }
    }

    /// How much more may be page-locked at once. Rereads the machine's figures, which takes tens of
    /// microseconds, less than the page-locking that follows.
    pub(super) fn more_bytes(&self, limit: Limit) -> u64 {
        let available = match self {
            Self::Process { sources, .. } if limit.by_default => sources.available_bytes(),
            _ => None,
        };
        available.map_or(u64::MAX, |bytes| bytes / SHARE)
    }
}

fn find(sources: &dyn Sources) -> Result<Limit> {
    let variable = |name: &str| sources.variable(name);
    let set = setting::pinned_limit(variable)?;
    let share = SHARE * setting::local_world_size(variable);
    let default = || {
        sources
            .available_bytes()
            .map_or(u64::MAX, |bytes| bytes / share)
    };
    Ok(Limit {
        bytes: set.unwrap_or_else(default),
        by_default: set.is_none(),
    })
}

struct ThisProcess;

impl Sources for ThisProcess {
    fn variable(&self, name: &str) -> Option<String> {
        Some(std::env::var_os(name)?.to_string_lossy().into_owned())
    }

    fn available_bytes(&self) -> Option<u64> {
        static MACHINE: LazyLock<Machine> = LazyLock::new(|| Machine::find("/".as_ref()));
        if cfg!(miri) {
            // Reading the files would take longer than the code under test.
            return None;
        }
        MACHINE.available_bytes()
    }
}

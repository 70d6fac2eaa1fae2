//! Where a budget's limit comes from.

use std::sync::OnceLock;

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
    bytes: u64,
    /// The limit is the default, so currently available memory counts too.
    by_default: bool,
}

/// What may be page-locked right now.
pub(super) struct LimitsNow {
    in_all_bytes: u64,
    more_bytes: u64,
}

impl LimitsNow {
    /// The limit, given the current usage.
    pub(super) fn with_in_use(&self, in_use_bytes: u64) -> u64 {
        self.in_all_bytes
            .min(in_use_bytes.saturating_add(self.more_bytes))
    }
}

impl Rule {
    pub(super) fn of_process() -> Self {
        Self::from_sources(ThisProcess::default())
    }

    pub(super) fn from_sources(sources: impl Sources + 'static) -> Self {
        Self::Process {
            sources: Box::new(sources),
            found: OnceLock::new(),
        }
    }

    pub(super) fn limit_bytes(&self) -> Result<u64> {
        Ok(self.limit()?.bytes)
    }

    /// Rereads the machine's figures. Takes tens of microseconds, less than the page-locking that follows.
    pub(super) fn limits_now(&self) -> Result<LimitsNow> {
        let limit = self.limit()?;
        let available = match self {
            Self::Process { sources, .. } if limit.by_default => sources.available_bytes(),
            _ => None,
        };
        Ok(LimitsNow {
            in_all_bytes: limit.bytes,
            more_bytes: available.map_or(u64::MAX, |bytes| bytes / SHARE),
        })
    }

    fn limit(&self) -> Result<Limit> {
        match self {
            Self::Fixed(bytes) => Ok(Limit {
                bytes: *bytes,
                by_default: false,
            }),
            Self::Process { sources, found } => found.get_or_init(|| find(&**sources)).clone(),
        }
    }
}

fn find(sources: &dyn Sources) -> Result<Limit> {
    let variable = |name: &str| sources.variable(name);
    if let Some(bytes) = setting::pinned_limit(variable)? {
        return Ok(Limit {
            bytes,
            by_default: false,
        });
    }
    let share = SHARE * setting::local_world_size(variable);
    let available = sources.available_bytes();
    Ok(Limit {
        bytes: available.map_or(u64::MAX, |bytes| bytes / share),
        by_default: true,
    })
}

#[derive(Default)]
struct ThisProcess {
    machine: OnceLock<Machine>,
}

impl Sources for ThisProcess {
    fn variable(&self, name: &str) -> Option<String> {
        Some(std::env::var_os(name)?.to_string_lossy().into_owned())
    }

    fn available_bytes(&self) -> Option<u64> {
        if cfg!(miri) {
            // Reading the files would take longer than the code under test.
            return None;
        }
        let machine = self.machine.get_or_init(|| Machine::find("/".as_ref()));
        machine.available_bytes()
    }
}

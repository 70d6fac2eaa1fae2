//! Where a budget's limit comes from.

use std::sync::OnceLock;

use super::machine::Machine;
use super::setting;
use crate::Result;

/// One part of this many: the other half of the available memory stays for everybody else.
const SHARE: u64 = 2;

/// How a limit is found.
pub(super) enum Rule {
    Fixed(u64),
    /// From the environment and the machine, asked when it is first needed.
    Process {
        sources: Box<dyn Sources>,
        found: OnceLock<Result<Limit>>,
    },
}

/// What the limit of a process is made of.
pub(super) trait Sources: Send + Sync {
    /// A variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;

    /// Memory that could be taken now, where the system tells.
    fn available_bytes(&self) -> Option<u64>;
}

#[derive(Clone, Copy)]
pub(super) struct Limit {
    bytes: u64,
    /// Nobody chose it, so what is available at the moment counts, too.
    by_default: bool,
}

/// What may be page-locked at this moment.
pub(super) struct LimitsNow {
    in_all_bytes: u64,
    more_bytes: u64,
}

impl LimitsNow {
    /// The most that may be in use, given what is.
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

    /// Reads the machine's figures again, some tens of microseconds; what is about to be
    /// page-locked takes longer.
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
            // Reading the files there takes longer than whatever is tested.
            return None;
        }
        let machine = self.machine.get_or_init(|| Machine::find("/".as_ref()));
        machine.available_bytes()
    }
}

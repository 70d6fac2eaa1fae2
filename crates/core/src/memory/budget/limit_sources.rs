//! Where a budget's limit comes from.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::cgroup::ControlGroups;
use super::environment_variables;
use crate::Result;
use crate::local_ranks::local_world_size;
use crate::sync::lock;

/// Fraction of available memory to use: half stays free for everything else.
const SHARE: u64 = 2;

/// Reading the machine's figures takes tens of microseconds, ten times as long as the driver needs for a
/// small buffer. So buffers that are small beside what is available share a reading. Together they may take
/// one part in `READING_PART` of it, at most `READING_BYTES_MAX`, and the reading expires.
const READING_PART: u64 = 16;
const READING_BYTES_MAX: u64 = 4 << 20;
const READING_TIME_MAX: Duration = Duration::from_millis(100);

/// How a limit is determined.
pub(super) enum Rule {
    Fixed(u64),
    /// From the environment and the machine, read on first use.
    Process {
        sources: Box<dyn Sources>,
        found: OnceLock<Result<Limit>>,
        reading: Mutex<Reading>,
    },
}

/// The last reading of the machine's figures.
#[derive(Default)]
pub(super) struct Reading {
    /// What may still be page-locked without another one.
    left_bytes: u64,
    taken: Option<Instant>,
}

/// Inputs to the limit of a process.
pub(super) trait Sources: Send + Sync {
    /// An environment variable.
    fn variable(&self, name: &str) -> Option<String>;

    /// Memory currently available, if the system reports it.
    fn available_bytes(&self) -> Option<u64>;

    /// The current time.
    fn now(&self) -> Instant;
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
            reading: Mutex::default(),
        }
    }

    pub(super) fn limit(&self) -> Result<Limit> {
        match self {
            Self::Fixed(bytes) => Ok(Limit {
                bytes: *bytes,
                by_default: false,
            }),
            Self::Process { sources, found, .. } => found.get_or_init(|| find(&**sources)).clone(),
        }
    }

    /// How to raise the limit.
    pub(super) fn remedy(&self) -> &'static str {
        match self {
            Self::Fixed(_) => "raise the limit given to Budget::with_limit",
            Self::Process { .. } => {
                "set PINLANE_PINNED_LIMIT (in bytes, or with a unit, such as 8GiB)"
            }
        }
    }

    /// How much more may be page-locked at once, by the machine's current figures. They are not read if the
    /// last reading covers another `bytes`.
    pub(super) fn more_bytes(&self, limit: Limit, bytes: u64) -> u64 {
        match self {
            Self::Process {
                sources, reading, ..
            } if limit.by_default => {
                if lock(reading).covers(bytes, sources.now()) {
                    return u64::MAX;
                }
                let Some(available_bytes) = sources.available_bytes() else {
                    return u64::MAX;
                };
                let more_bytes = available_bytes / SHARE;
                *lock(reading) = Reading {
                    left_bytes: (more_bytes / READING_PART).min(READING_BYTES_MAX),
                    taken: Some(sources.now()),
                };
                more_bytes
            }
            _ => u64::MAX,
        }
    }
}

impl Reading {
    /// Whether it is recent enough for another `bytes`, and leaves room for them. Takes that room.
    fn covers(&mut self, bytes: u64, now: Instant) -> bool {
        let recent = |taken| now.saturating_duration_since(taken) < READING_TIME_MAX;
        let covers = bytes <= self.left_bytes && self.taken.is_some_and(recent);
        self.left_bytes -= if covers { bytes } else { 0 };
        covers
    }
}

fn find(sources: &dyn Sources) -> Result<Limit> {
    let variable = |name: &str| sources.variable(name);
    let set = environment_variables::pinned_limit(variable)?;
    let share = SHARE * local_world_size(variable);
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
        available_bytes()
    }

    fn now(&self) -> Instant {
        Instant::now()
    }
}

/// Memory that is available to this process now: of the machine or of its control groups, whichever is less.
pub fn available_bytes() -> Option<u64> {
    static MACHINE: LazyLock<Machine> = LazyLock::new(|| Machine::find("/".as_ref()));
    if cfg!(miri) {
        // Reading the files would take longer than the code under test.
        return None;
    }
    MACHINE.available_bytes()
}

/// Sources of the machine's memory figures.
pub(super) struct Machine {
    meminfo: PathBuf,
    groups: ControlGroups,
}

impl Machine {
    /// `root` is `/`, except in tests.
    pub(super) fn find(root: &Path) -> Self {
        Self {
            meminfo: root.join("proc/meminfo"),
            groups: ControlGroups::find(root),
        }
    }

    /// Available memory of the machine or of the control groups, whichever is less, if known.
    pub(super) fn available_bytes(&self) -> Option<u64> {
        let machine = fs::read_to_string(&self.meminfo).ok();
        let machine = machine.and_then(|text| mem_available(&text));
        let groups = self.groups.memory().map(|memory| memory.headroom_bytes);
        machine.into_iter().chain(groups).min()
    }
}

/// Parses `MemAvailable:   24211016 kB` into bytes.
fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib = line.trim().strip_suffix("kB")?.trim_end();
    kib.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
#[cfg(not(miri))] // files
mod tests {
    use super::super::tests::Tree;
    use super::*;

    const MEMINFO: &str = "MemTotal:       64 kB\nMemFree:  8 kB\nMemAvailable:   1000 kB\n";

    #[test]
    fn memory_of_the_machine_is_read() {
        assert_eq!(mem_available(MEMINFO), Some(1_024_000));
        for garbage in [
            "",
            "MemAvailable: many kB",
            "MemAvailable: 5",
            "MemFree: 8 kB",
        ] {
            assert_eq!(mem_available(garbage), None, "{garbage:?}");
        }
    }

    #[test]
    fn the_least_of_machine_and_group_counts() {
        let tree = Tree::new("machine");
        assert_eq!(Machine::find(tree.root()).available_bytes(), None);
        tree.write("proc/meminfo", MEMINFO);
        let machine = Machine::find(tree.root());
        assert_eq!(machine.available_bytes(), Some(1_024_000));

        tree.write("proc/self/cgroup", "0::/job\n");
        tree.write(
            "proc/self/mountinfo",
            "25 21 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        );
        tree.write("sys/fs/cgroup/job/memory.max", "500000\n");
        tree.write("sys/fs/cgroup/job/memory.current", "100000\n");
        let machine = Machine::find(tree.root());
        assert_eq!(machine.available_bytes(), Some(400_000));
        tree.write("sys/fs/cgroup/job/memory.current", "200000\n");
        assert_eq!(machine.available_bytes(), Some(300_000), "asked again");
        tree.write("proc/meminfo", "MemAvailable: 1 kB\n");
        assert_eq!(machine.available_bytes(), Some(1024));
    }

    #[test]
    fn this_machine_tells() {
        let available = Machine::find("/".as_ref()).available_bytes();
        assert!(available.is_some_and(|bytes| bytes > 0), "{available:?}");
    }
}

//! How much memory is available now.

use std::fs;
use std::path::{Path, PathBuf};

use super::cgroup::ControlGroups;

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

    /// Available memory of the machine or of the process's control groups, whichever is less; `None` if
    /// neither is known.
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

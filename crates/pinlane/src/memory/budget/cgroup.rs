//! How much memory the process's control groups leave it, versions 1 and 2.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// The control groups that limit the process's memory: its own and all above it.
pub(super) struct Groups {
    groups: Vec<Group>,
}

struct Group {
    folder: PathBuf,
    files: &'static Files,
}

/// What a version calls its figures.
struct Files {
    limit: &'static str,
    usage: &'static str,
    /// In `memory.stat`: file cache that goes away when memory is needed.
    reclaimable: &'static str,
}

const V1: Files = Files {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file",
};

const V2: Files = Files {
    limit: "memory.max",
    usage: "memory.current",
    reclaimable: "inactive_file",
};

impl Groups {
    /// `root` is `/`, except in tests. On a hybrid system the memory controller is in either
    /// version's tree; the other one has no files of ours.
    pub(super) fn find(root: &Path) -> Self {
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        let memberships = read("proc/self/cgroup");
        let mounts = read("proc/self/mountinfo");
        let mut groups = Vec::new();
        for (files, group) in memberships.lines().filter_map(membership) {
            for mount in mounts.lines().filter_map(|line| mount(line, files)) {
                add_with_ancestors(root, &mount, group, files, &mut groups);
            }
        }
        Self { groups }
    }

    /// The least that any of the groups leaves; `None` where none limits.
    pub(super) fn headroom_bytes(&self) -> Option<u64> {
        self.groups.iter().filter_map(Group::headroom_bytes).min()
    }
}

/// A mounted tree of groups.
struct Mount {
    /// The group that it shows at its top.
    top: String,
    /// Where.
    at: PathBuf,
}

/// `4:memory:/path` of version 1, `0::/path` of version 2.
fn membership(line: &str) -> Option<(&'static Files, &str)> {
    let (_, line) = line.split_once(':')?;
    let (controllers, path) = line.split_once(':')?;
    if controllers.is_empty() {
        Some((&V2, path))
    } else if controllers.split(',').any(|name| name == "memory") {
        Some((&V1, path))
    } else {
        None
    }
}

/// A line of mountinfo, where it is a tree of this version with memory in it.
fn mount(line: &str, files: &Files) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ');
    let (top, at) = (before.nth(3)?, before.next()?);
    let mut after = after.split(' ');
    let (kind, options) = (after.next()?, after.nth(1)?);
    let matches = if files.limit == V2.limit {
        kind == "cgroup2"
    } else {
        kind == "cgroup" && options.split(',').any(|option| option == "memory")
    };
    matches.then(|| Mount {
        top: unescape(top),
        at: PathBuf::from(unescape(at)),
    })
}

/// Spaces and the like are written as `\040` in mountinfo.
fn unescape(text: &str) -> String {
    let mut plain = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = (first == b'\\').then(|| tail.get(..3)).flatten();
        let code = code.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                rest = &tail[3..];
            }
            None => {
                plain.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

fn add_with_ancestors(
    root: &Path,
    mount: &Mount,
    group: &str,
    files: &'static Files,
    groups: &mut Vec<Group>,
) {
    let top = root.join(mount.at.strip_prefix("/").unwrap_or(&mount.at));
    // Inside of a container the mount may begin at the group itself, or the group's name may be
    // from outside of it. Its top is all that can be seen then.
    let inside = Path::new(group)
        .strip_prefix(&mount.top)
        .ok()
        .filter(|path| path.components().all(|c| matches!(c, Component::Normal(_))))
        .unwrap_or(Path::new(""));
    groups.extend(inside.ancestors().map(|path| Group {
        folder: top.join(path),
        files,
    }));
}

impl Group {
    /// `None` where it sets no limit, or has none that can be read.
    fn headroom_bytes(&self) -> Option<u64> {
        let read = |name: &str| fs::read_to_string(self.folder.join(name)).ok();
        let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
        // "max" is no number, and no limit.
        let limit = number(self.files.limit)?;
        let usage = number(self.files.usage).unwrap_or(0);
        let stat = read("memory.stat").unwrap_or_default();
        let reclaimable = stat.lines().find_map(|line| {
            let (name, value) = line.split_once(' ')?;
            (name == self.files.reclaimable)
                .then(|| value.trim().parse::<u64>().ok())
                .flatten()
        });
        let held = usage.saturating_sub(reclaimable.unwrap_or(0));
        Some(limit.saturating_sub(held))
    }
}

#[cfg(test)]
#[cfg(not(miri))] // files
#[path = "cgroup_tests.rs"]
mod tests;

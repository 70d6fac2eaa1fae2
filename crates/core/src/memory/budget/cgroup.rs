//! Memory and CPU limits of the process's control groups, versions 1 and 2.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// The control groups that limit the process: its own and all ancestors.
///
/// ```
/// let groups = pinlane::memory::ControlGroups::of_process();
/// if let Some(memory) = groups.memory() {
///     println!("{} of {} bytes left", memory.headroom_bytes, memory.limit_bytes);
/// }
/// ```
#[derive(Debug)]
pub struct ControlGroups {
    memory: Vec<Group>,
    cpu: Vec<Group>,
}

/// Memory limit of a control group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupMemory {
    /// The limit for all its processes together.
    pub limit_bytes: u64,
    /// How much of the limit is left, counting reclaimable file cache as free.
    pub headroom_bytes: u64,
}

#[derive(Debug)]
struct Group {
    folder: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    V1,
    V2,
}

impl ControlGroups {
    /// The control groups of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self::find("/".as_ref())
    }

    /// The control groups described by the files below `root`, which is `/` except in tests. On a hybrid
    /// system, a controller is in one version's tree and has no files in the other.
    #[must_use]
    pub fn find(root: &Path) -> Self {
        let read = |path: &str| text(&root.join(path)).unwrap_or_default();
        let memberships = read("proc/self/cgroup");
        let mounts = read("proc/self/mountinfo");
        let groups_of = |controller: &str| {
            let memberships = memberships.lines();
            memberships
                .filter_map(|line| membership(line, controller))
                .flat_map(|(version, group)| {
                    let mounts = mounts.lines();
                    mounts
                        .filter_map(move |line| mount(line, version, controller))
                        .flat_map(move |mount| with_ancestors(root, &mount, group, version))
                })
                .collect()
        };
        Self {
            memory: groups_of("memory"),
            cpu: groups_of("cpu"),
        }
    }

    /// Memory of the group with the least headroom; `None` if no group limits memory.
    #[must_use]
    pub fn memory(&self) -> Option<GroupMemory> {
        let limits = self.memory.iter().filter_map(Group::memory);
        limits.min_by_key(|memory| memory.headroom_bytes)
    }

    /// Number of CPUs the process may use at once; `None` if no group limits it.
    #[must_use]
    pub fn cpus(&self) -> Option<f64> {
        let limits = self.cpu.iter().filter_map(Group::cpus);
        limits.min_by(f64::total_cmp)
    }
}

/// Larger than any of these files, even with thousands of mounts.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// Contents of a file, if it is text.
fn text(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// A mounted cgroup hierarchy.
struct Mount {
    /// The group at the root of the mount.
    top: String,
    /// The mount point.
    at: PathBuf,
}

/// Parses `4:memory:/path` (version 1) or `0::/path` (version 2).
fn membership<'l>(line: &'l str, controller: &str) -> Option<(Version, &'l str)> {
    let (_, line) = line.split_once(':')?;
    let (controllers, path) = line.split_once(':')?;
    if controllers.is_empty() {
        Some((Version::V2, path))
    } else if controllers.split(',').any(|name| name == controller) {
        Some((Version::V1, path))
    } else {
        None
    }
}

/// Parses a line of mountinfo, if it is a hierarchy of this version with this controller.
fn mount(line: &str, version: Version, controller: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ');
    let (top, at) = (before.nth(3)?, before.next()?);
    let mut after = after.split(' ');
    let (kind, options) = (after.next()?, after.nth(1)?);
    let matches = match version {
        Version::V2 => kind == "cgroup2",
        Version::V1 => kind == "cgroup" && options.split(',').any(|option| option == controller),
    };
    matches.then(|| Mount {
        top: unescape(top),
        at: PathBuf::from(unescape(at)),
    })
}

/// Decodes mountinfo's octal escapes, such as `\040` for a space.
fn unescape(text: &str) -> String {
    let mut plain = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = tail.get(..3).filter(|_| first == b'\\');
        let code = code.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = code.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(byte.unwrap_or(first));
        rest = byte.map_or(tail, |_| &tail[3..]);
    }
    String::from_utf8_lossy(&plain).into_owned()
}

fn with_ancestors(root: &Path, mount: &Mount, group: &str, version: Version) -> Vec<Group> {
    let top = root.join(mount.at.strip_prefix("/").unwrap_or(&mount.at));
    // In a container, the mount may be rooted at the group itself, or the group's name may come from
    // outside the container. Only the root of the mount is visible then.
    let inside = Path::new(group)
        .strip_prefix(&mount.top)
        .ok()
        .filter(|path| path.components().all(|c| matches!(c, Component::Normal(_))))
        .unwrap_or(Path::new(""));
    let group = |path| Group {
        folder: top.join(path),
        version,
    };
    inside.ancestors().map(group).collect()
}

impl Group {
    fn read(&self, name: &str) -> Option<String> {
        text(&self.folder.join(name))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.read(name)?.trim().parse().ok()
    }

    /// `None` if the group sets no limit, or none that can be read.
    fn memory(&self) -> Option<GroupMemory> {
        let [limit, usage, reclaimable] = match self.version {
            Version::V1 => [
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "total_inactive_file",
            ],
            Version::V2 => ["memory.max", "memory.current", "inactive_file"],
        };
        // "max" is not a number and means no limit.
        let limit_bytes = self.number(limit)?;
        let usage = self.number(usage).unwrap_or(0);
        let stat = self.read("memory.stat").unwrap_or_default();
        let reclaimable = stat.lines().find_map(|line| {
            let value = line.strip_prefix(reclaimable)?.strip_prefix(' ')?;
            value.trim().parse::<u64>().ok()
        });
        let held = usage.saturating_sub(reclaimable.unwrap_or(0));
        Some(GroupMemory {
            limit_bytes,
            headroom_bytes: limit_bytes.saturating_sub(held),
        })
    }

    /// CPU quota divided by period. -1 and "max" do not parse and mean no limit.
    fn cpus(&self) -> Option<f64> {
        let (quota_us, period_us) = match self.version {
            Version::V1 => (
                self.number("cpu.cfs_quota_us")?,
                self.number("cpu.cfs_period_us")?,
            ),
            Version::V2 => {
                let text = self.read("cpu.max")?;
                let mut words = text.split_whitespace();
                (words.next()?.parse().ok()?, words.next()?.parse().ok()?)
            }
        };
        (period_us > 0).then(|| quota_us as f64 / period_us as f64)
    }
}

#[cfg(test)]
#[cfg(not(miri))] // files
#[path = "cgroup_tests.rs"]
mod tests;

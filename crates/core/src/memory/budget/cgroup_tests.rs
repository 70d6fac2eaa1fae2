//! Cgroup hierarchies as real systems present them.

use super::super::tests::Tree;
use super::*;

const V2_MOUNT: &str = "25 21 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
const V1_MOUNT: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

fn tree(name: &str, memberships: &str, mounts: &str) -> Tree {
    let tree = Tree::new(name);
    tree.write("proc/self/cgroup", memberships);
    tree.write("proc/self/mountinfo", mounts);
    tree
}

fn headroom(tree: &Tree) -> Option<u64> {
    let memory = ControlGroups::find(tree.root()).memory()?;
    Some(memory.headroom_bytes)
}

/// Writes files one after the other, and compares the headroom after each.
#[track_caller]
fn write_each(tree: &Tree, steps: &[(&str, &str, Option<u64>)]) {
    for (path, text, expected) in steps {
        tree.write(&format!("sys/fs/cgroup/{path}"), &format!("{text}\n"));
        assert_eq!(headroom(tree), *expected, "{path} = {text}");
    }
}

#[test]
fn version_2_counts_reclaimable_cache_as_free() {
    let tree = tree("v2", "0::/a/b\n", V2_MOUNT);
    let stat = "anon 1\nfile 600\ninactive_file 500\nactive_file 100";
    let steps = [
        ("a/b/memory.max", "1000", Some(1000)),
        ("a/b/memory.current", "700", Some(300)), // no statistics: nothing to reclaim
        ("a/b/memory.stat", stat, Some(800)),
        ("a/b/memory.current", "5000", Some(0)), // over its limit
    ];
    write_each(&tree, &steps);
}

#[test]
fn the_least_of_all_ancestors_counts() {
    let tree = tree("nested", "0::/a/b/c\n", V2_MOUNT);
    let steps = [
        ("a/b/c/memory.max", "max", None),
        ("a/b/c/memory.current", "10", None),
        ("a/memory.max", "1000", Some(1000)),
        ("a/memory.current", "100", Some(900)),
        ("a/b/memory.max", "400", Some(400)),
        ("a/b/memory.current", "100", Some(300)),
        ("memory.max", "50", Some(50)), // the top, with no usage told
    ];
    write_each(&tree, &steps);
}

#[test]
fn version_1_has_other_names() {
    let tree = tree("v1", "5:cpu,cpuacct:/x\n4:memory:/job\n", V1_MOUNT);
    let stat = "inactive_file 7\ntotal_inactive_file 200";
    let steps = [
        ("memory/job/memory.limit_in_bytes", "1000", Some(1000)),
        ("memory/job/memory.usage_in_bytes", "600", Some(400)),
        ("memory/job/memory.stat", stat, Some(600)),
        ("memory/memory.limit_in_bytes", "500", Some(500)),
    ];
    write_each(&tree, &steps);
}

#[test]
fn a_hybrid_has_memory_in_one_of_its_trees() {
    let unified = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    let cpu = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
    let mounts = format!("{cpu}{V1_MOUNT}{unified}");
    let tree = tree("hybrid", "4:memory:/job\n1:cpu:/\n0::/\n", &mounts);
    tree.write("sys/fs/cgroup/cpu/memory.limit_in_bytes", "1\n");
    tree.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1000\n");
    assert_eq!(headroom(&tree), Some(1000));
}

#[test]
fn a_container_sees_its_group_at_the_top() {
    // Without a cgroup namespace, the mount is rooted at the group.
    let mounts = "25 21 0:22 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
    let own = tree("container", "0::/docker/abc\n", mounts);
    own.write("sys/fs/cgroup/memory.max", "700\n");
    assert_eq!(headroom(&own), Some(700));
    // Names from outside the container.
    for name in ["0::/../other\n", "0::/kubepods/pod1\n"] {
        let foreign = tree("foreign", name, mounts);
        foreign.write("sys/fs/cgroup/memory.max", "600\n");
        assert_eq!(headroom(&foreign), Some(600), "{name}");
    }
}

#[test]
fn a_mount_may_have_spaces_in_its_name() {
    let mounts = r"25 21 0:22 / /my\040groups rw - cgroup2 cgroup2 rw";
    let tree = tree("spaces", "0::/\n", mounts);
    tree.write("my groups/memory.max", "12\n");
    assert_eq!(headroom(&tree), Some(12));
    assert_eq!(unescape(r"a\04"), r"a\04", "cut short");
    assert_eq!(unescape(r"a\zzz\134"), r"a\zzz\");
}

#[test]
fn garbage_and_missing_files_limit_nothing() {
    assert_eq!(headroom(&Tree::new("nothing")), None);
    let memberships = "what\n::\n0::\n:memory:\n";
    let garbage = tree("garbage", memberships, "25 - cgroup2\n - - -\n");
    assert_eq!(headroom(&garbage), None);
    let tree = tree("words", "0::/job\n", V2_MOUNT);
    assert_eq!(headroom(&tree), None, "no files");
    let steps = [
        ("job/memory.max", "a lot", None),
        ("job/memory.max", "1000", Some(1000)),
        ("job/memory.current", "some", Some(1000)),
        (
            "job/memory.stat",
            "inactive_file\ninactive_file x",
            Some(1000),
        ),
    ];
    write_each(&tree, &steps);
}

#[test]
fn the_limit_is_told_beside_what_is_left() {
    let tree = tree("both", "0::/a\n", V2_MOUNT);
    tree.write("sys/fs/cgroup/memory.max", "5000\n");
    tree.write("sys/fs/cgroup/a/memory.max", "1000\n");
    tree.write("sys/fs/cgroup/a/memory.current", "400\n");
    let memory = GroupMemory {
        limit_bytes: 1000,
        headroom_bytes: 600,
    };
    assert_eq!(ControlGroups::find(tree.root()).memory(), Some(memory));
}

#[test]
fn the_least_quota_of_cpus_counts() {
    let tree = tree("cpus", "0::/a/b\n", V2_MOUNT);
    let cpus = || ControlGroups::find(tree.root()).cpus();
    assert_eq!(cpus(), None);
    tree.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    assert_eq!(cpus(), None);
    tree.write("sys/fs/cgroup/a/cpu.max", "250000 100000\n");
    assert_eq!(cpus(), Some(2.5));
    tree.write("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
    assert_eq!(cpus(), Some(0.5));
    for garbage in ["", "1", "1 0", "x y", "-1 100000"] {
        tree.write("sys/fs/cgroup/a/b/cpu.max", garbage);
        assert_eq!(cpus(), Some(2.5), "{garbage:?}");
    }
}

#[test]
fn quotas_of_version_1_are_in_two_files() {
    let mounts = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
    let tree = tree("cpus-v1", "5:cpu,cpuacct:/x\n", mounts);
    let cpus = || ControlGroups::find(tree.root()).cpus();
    tree.write("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
    tree.write("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
    assert_eq!(cpus(), None);
    tree.write("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "400000\n");
    assert_eq!(cpus(), Some(4.0));
}

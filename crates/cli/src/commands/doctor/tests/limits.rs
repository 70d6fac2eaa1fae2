//! Limits of the process.

use super::*;

const GIB: u64 = 1 << 30;

fn of(tree: &Tree) -> Facts {
    facts(tree, healthy_gpu())
}

fn in_group() -> Tree {
    Tree::healthy().with("proc/self/cgroup", "0::/job\n").with(
        "proc/self/mountinfo",
        "25 21 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    )
}

#[test]
fn memory_of_the_control_group() {
    good(&of(&Tree::healthy()), "control group memory", ["no limit"]);
    let group = in_group().with("sys/fs/cgroup/job/memory.max", &(16 * GIB).to_string());
    good(
        &of(&group),
        "control group memory",
        ["16 GiB left of 16 GiB"],
    );
    let group = group.with("sys/fs/cgroup/job/memory.current", &(15 * GIB).to_string());
    warns(
        &of(&group),
        "control group memory",
        ["1 GiB left of 16 GiB", "--memory"],
    );
    // A limit above the machine's memory does not count.
    let group = group.with("sys/fs/cgroup/job/memory.max", "9223372036854771712");
    good(&of(&group), "control group memory", ["no limit"]);
}

#[test]
fn cpus_by_affinity_and_by_quota() {
    good(&of(&Tree::healthy()), "CPUs", ["8 (process affinity)"]);
    let few = Tree::healthy().with("proc/self/status", "Cpus_allowed_list: 8-9\n");
    warns(&of(&few), "CPUs", ["2 (process affinity)", "--cpus"]);
    let quota = in_group().with("sys/fs/cgroup/job/cpu.max", "150000 100000");
    warns(&of(&quota), "CPUs", ["1.5 (control group quota)"]);
    let ample = in_group().with("sys/fs/cgroup/job/cpu.max", "6400000 100000");
    good(&of(&ample), "CPUs", ["8 (process affinity)"]);
    let unknown = Tree::healthy().without("proc/self/status");
    skips(&of(&unknown), "CPUs", []);
}

#[test]
fn locked_memory() {
    let limits = |soft: &str, capabilities: &str| {
        let tree = Tree::healthy()
            .with(
                "proc/self/limits",
                &format!("Max locked memory  {soft}  unlimited  bytes\n"),
            )
            .with(
                "proc/self/status",
                &format!("CapEff:\t{capabilities}\nCpus_allowed_list:\t8-15\n"),
            );
        of(&tree)
    };
    good(&limits("unlimited", "0"), "locked memory", ["unlimited"]);
    warns(
        &limits("8388608", "0"),
        "locked memory",
        ["8 MiB", "ulimit -l unlimited"],
    );
    good(
        &limits("8388608", "0000000000004000"),
        "locked memory",
        ["CAP_IPC_LOCK"],
    );
    warns(&limits("8388608", "ffffffffffffbfff"), "locked memory", []);
    good(&limits("17179869184", "0"), "locked memory", ["16 GiB"]);
    skips(&limits("lots", "0"), "locked memory", []);
}

#[test]
fn pinned_budget() {
    let budget = |variables: &[(&str, &str)], bytes| Facts {
        host: Tree::healthy().host_with_budget(variables, bytes),
        gpus: gpus(vec![healthy_gpu()]),
    };
    let chosen = [("PINLANE_PINNED_LIMIT", "whatever")];
    good(
        &budget(&[], Ok(32 * GIB)),
        "pinned budget",
        ["32 GiB", "half"],
    );
    warns(
        &budget(&[], Ok(GIB / 2)),
        "pinned budget",
        ["512 MiB", "low"],
    );
    good(
        &budget(&chosen, Ok(4 * GIB)),
        "pinned budget",
        ["PINLANE_PINNED_LIMIT"],
    );
    warns(&budget(&chosen, Ok(GIB / 2)), "pinned budget", ["raise"]);
    warns(
        &budget(&chosen, Ok(65 * GIB)),
        "pinned budget",
        ["more than is available"],
    );
    warns(
        &budget(&chosen, Ok(u64::MAX)),
        "pinned budget",
        ["no limit"],
    );
    let wrong = budget(&chosen, Err("PINLANE_PINNED_LIMIT=\"junk\"".to_owned()));
    fails(
        &wrong,
        "pinned budget",
        ["junk", "unset PINLANE_PINNED_LIMIT"],
    );
}

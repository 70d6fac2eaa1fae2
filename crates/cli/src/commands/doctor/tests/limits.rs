//! What the process may use.

use pinlane_report::DoctorStatus::{Fail, Ok as Good, Skip, Warn};

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
    expect(
        &of(&Tree::healthy()),
        "control group memory",
        Good,
        &["no limit"],
    );
    let group = in_group().with("sys/fs/cgroup/job/memory.max", &(16 * GIB).to_string());
    expect(
        &of(&group),
        "control group memory",
        Good,
        &["16 GiB left of 16 GiB"],
    );
    let group = group.with("sys/fs/cgroup/job/memory.current", &(15 * GIB).to_string());
    expect(
        &of(&group),
        "control group memory",
        Warn,
        &["1 GiB left of 16 GiB", "--memory"],
    );
    // More than the machine has limits nothing.
    let group = group.with("sys/fs/cgroup/job/memory.max", "9223372036854771712");
    expect(&of(&group), "control group memory", Good, &["no limit"]);
}

#[test]
fn cpus_by_affinity_and_by_quota() {
    expect(
        &of(&Tree::healthy()),
        "CPUs",
        Good,
        &["8 by the process's affinity"],
    );
    let few = Tree::healthy().with("proc/self/status", "Cpus_allowed_list: 8-9\n");
    expect(
        &of(&few),
        "CPUs",
        Warn,
        &["2 by the process's affinity", "--cpus"],
    );
    let quota = in_group().with("sys/fs/cgroup/job/cpu.max", "150000 100000");
    expect(
        &of(&quota),
        "CPUs",
        Warn,
        &["1.5 by the control group's quota"],
    );
    let ample = in_group().with("sys/fs/cgroup/job/cpu.max", "6400000 100000");
    expect(&of(&ample), "CPUs", Good, &["8 by the process's affinity"]);
    let unknown = Tree::healthy().without("proc/self/status");
    expect(&of(&unknown), "CPUs", Skip, &[]);
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
    expect(
        &limits("unlimited", "0"),
        "locked memory",
        Good,
        &["unlimited"],
    );
    expect(
        &limits("8388608", "0"),
        "locked memory",
        Warn,
        &["8 MiB", "ulimit -l unlimited"],
    );
    expect(
        &limits("8388608", "0000000000004000"),
        "locked memory",
        Good,
        &["CAP_IPC_LOCK"],
    );
    expect(
        &limits("8388608", "ffffffffffffbfff"),
        "locked memory",
        Warn,
        &[],
    );
    expect(
        &limits("17179869184", "0"),
        "locked memory",
        Good,
        &["16 GiB"],
    );
    expect(&limits("lots", "0"), "locked memory", Skip, &[]);
}

#[test]
fn the_budget_of_the_library() {
    let budget = |variables: &[(&str, &str)], bytes| Facts {
        host: Tree::healthy().host_with_budget(variables, bytes),
        gpus: gpus(vec![healthy_gpu()]),
    };
    let chosen = [("PINLANE_PINNED_LIMIT", "whatever")];
    expect(
        &budget(&[], Ok(32 * GIB)),
        "pinned budget",
        Good,
        &["32 GiB", "half"],
    );
    expect(
        &budget(&[], Ok(GIB / 2)),
        "pinned budget",
        Warn,
        &["512 MiB", "little"],
    );
    expect(
        &budget(&chosen, Ok(4 * GIB)),
        "pinned budget",
        Good,
        &["PINLANE_PINNED_LIMIT"],
    );
    expect(
        &budget(&chosen, Ok(GIB / 2)),
        "pinned budget",
        Warn,
        &["raise"],
    );
    expect(
        &budget(&chosen, Ok(65 * GIB)),
        "pinned budget",
        Warn,
        &["more than there is"],
    );
    expect(
        &budget(&chosen, Ok(u64::MAX)),
        "pinned budget",
        Warn,
        &["no limit"],
    );
    let wrong = budget(&chosen, Err("PINLANE_PINNED_LIMIT=\"junk\"".to_owned()));
    expect(
        &wrong,
        "pinned budget",
        Fail,
        &["junk", "unset PINLANE_PINNED_LIMIT"],
    );
}

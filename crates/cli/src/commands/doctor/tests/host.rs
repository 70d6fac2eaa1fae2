//! The host's memory, and the limits of the process.

use super::*;

const GIB: u64 = 1 << 30;
const ENABLED: &str = "sys/kernel/mm/transparent_hugepage/enabled";
const DEFRAG: &str = "sys/kernel/mm/transparent_hugepage/defrag";

#[test]
fn available_memory() {
    let meminfo = |text: &str| found(&with_file("proc/meminfo", text), "memory available");
    let available = |kib| meminfo(&format!("MemTotal: 134217728 kB\nMemAvailable: {kib} kB\n"));
    available(64 << 20).good(["64 GiB of 128 GiB"]);
    available(8 << 20).warns(["8 GiB", "--sort=-rss"]);
    meminfo("MemTotal: 1 kB\n").skips([]);
    // Little memory, although most of it is available.
    meminfo("MemTotal: 1048576 kB\nMemAvailable: 1000000 kB\n").warns([]);
}

#[test]
fn huge_pages() {
    let enabled = |text| found(&with_file(ENABLED, text), "huge pages");
    enabled("[always] madvise never").good(["always"]);
    enabled("always madvise [never]\n").warns(["echo madvise | sudo tee /", ENABLED]);
    enabled("what").skips([]);
    enabled("[sometimes]").skips(["sometimes"]);
    let none = Tree::healthy().without("sys/kernel/mm/transparent_hugepage");
    found(&machine(none), "huge pages").skips([]);
}

#[test]
fn making_huge_pages() {
    let defrag = |text| found(&with_file(DEFRAG, text), "making huge pages");
    defrag("[always] never").good([]);
    defrag("always defer defer+madvise madvise [never]").warns(["/", DEFRAG]);
    // Does not apply without huge pages.
    let off = names(&with_file(ENABLED, "always madvise [never]"));
    assert!(!off.iter().any(|name| name == "making huge pages"));
}

#[test]
fn wsl() {
    let version = "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@host)\n";
    found(&with_file("proc/version", version), "WSL").warns(["limits", ".wslconfig"]);
    found(&machine(Tree::healthy()), "WSL").good([]);
}

fn in_group() -> Tree {
    let mounts = "25 21 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    let tree = Tree::healthy().with("proc/self/cgroup", "0::/job\n");
    tree.with("proc/self/mountinfo", mounts)
}

#[test]
fn memory_of_the_control_group() {
    const CHECK: &str = "control group memory";
    const MAX: &str = "sys/fs/cgroup/job/memory.max";
    found(&machine(Tree::healthy()), CHECK).good(["no limit"]);
    let gib = |count: u64| (count * GIB).to_string();
    let limited = || in_group().with(MAX, &gib(16));
    found(&machine(limited()), CHECK).good(["16 GiB left of 16 GiB"]);
    let full = || limited().with("sys/fs/cgroup/job/memory.current", &gib(15));
    found(&machine(full()), CHECK).warns(["1 GiB left of 16 GiB", "--memory"]);
    // A limit above the machine's memory does not count.
    found(&machine(full().with(MAX, "9223372036854771712")), CHECK).good(["no limit"]);
}

#[test]
fn cpus_by_affinity_and_by_quota() {
    let cpus = |tree: Tree| found(&machine(tree), "CPUs");
    cpus(Tree::healthy()).good(["8 (process affinity)"]);
    let few = Tree::healthy().with("proc/self/status", "Cpus_allowed_list: 8-9\n");
    cpus(few).warns(["2 (process affinity)", "--cpus"]);
    let quota = |text| cpus(in_group().with("sys/fs/cgroup/job/cpu.max", text));
    quota("150000 100000").warns(["1.5 (control group quota)"]);
    quota("6400000 100000").good(["8 (process affinity)"]);
    cpus(Tree::healthy().without("proc/self/status")).skips([]);
}

#[test]
fn locked_memory() {
    let limits_on = |wsl: bool, soft: &str, capabilities: &str| {
        let limits = format!("Max locked memory  {soft}  unlimited  bytes\n");
        let status = format!("CapEff:\t{capabilities}\nCpus_allowed_list:\t8-15\n");
        let tree = Tree::healthy().with("proc/self/limits", &limits);
        let mut facts = machine(tree.with("proc/self/status", &status));
        facts.host.wsl = wsl;
        found(&facts, "locked memory")
    };
    let limits = |soft: &str, capabilities: &str| limits_on(false, soft, capabilities);
    limits("unlimited", "0").good(["unlimited"]);
    limits("8388608", "0").good(["8 MiB", "not memory that the driver pins"]);
    limits("8388608", "ffffffffffffbfff").good(["8 MiB"]);
    limits_on(true, "8388608", "0").warns(["8 MiB", "ulimit -l unlimited"]);
    limits_on(true, "8388608", "0000000000004000").good(["CAP_IPC_LOCK"]);
    limits_on(true, "8388608", "ffffffffffffbfff").warns([]);
    limits("17179869184", "0").good(["16 GiB"]);
    limits("lots", "0").skips([]);
}

#[test]
fn pinned_budget() {
    let budget = |variables: &[(&str, &str)], bytes| {
        let mut facts = machine(Tree::healthy());
        facts.host = Tree::healthy().host(variables);
        facts.host.budget_bytes = bytes;
        found(&facts, "pinned budget")
    };
    let chosen = [("PINLANE_PINNED_LIMIT", "whatever")];
    budget(&[], Ok(32 * GIB)).good(["32 GiB", "half"]);
    budget(&[], Ok(GIB / 2)).warns(["512 MiB", "low"]);
    budget(&chosen, Ok(4 * GIB)).good(["PINLANE_PINNED_LIMIT"]);
    budget(&chosen, Ok(GIB / 2)).warns(["raise"]);
    budget(&chosen, Ok(65 * GIB)).warns(["more than is available"]);
    budget(&chosen, Ok(u64::MAX)).warns(["no limit"]);
    let wrong = Err("PINLANE_PINNED_LIMIT=\"junk\"".to_owned());
    budget(&chosen, wrong).fails(["junk", "unset PINLANE_PINNED_LIMIT"]);
}

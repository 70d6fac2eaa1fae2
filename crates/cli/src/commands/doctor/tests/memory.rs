//! The host's memory.

use super::*;

const ENABLED: &str = "sys/kernel/mm/transparent_hugepage/enabled";
const DEFRAG: &str = "sys/kernel/mm/transparent_hugepage/defrag";

fn with(path: &str, text: &str) -> Facts {
    facts(&Tree::healthy().with(path, text), healthy_gpu())
}

#[test]
fn available_memory() {
    let meminfo = |available: u64| {
        with(
            "proc/meminfo",
            &format!("MemTotal: 134217728 kB\nMemAvailable: {available} kB\n"),
        )
    };
    good(
        &meminfo(64 << 20),
        "memory available",
        ["64 GiB of 128 GiB"],
    );
    warns(
        &meminfo(8 << 20),
        "memory available",
        ["8 GiB", "--sort=-rss"],
    );
    skips(
        &with("proc/meminfo", "MemTotal: 1 kB\n"),
        "memory available",
        [],
    );
    // Little memory, although most of it is available.
    let small = with(
        "proc/meminfo",
        "MemTotal: 1048576 kB\nMemAvailable: 1000000 kB\n",
    );
    warns(&small, "memory available", []);
}

#[test]
fn huge_pages() {
    good(
        &with(ENABLED, "[always] madvise never"),
        "huge pages",
        ["always"],
    );
    warns(
        &with(ENABLED, "always madvise [never]\n"),
        "huge pages",
        ["echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"],
    );
    skips(&with(ENABLED, "what"), "huge pages", []);
    skips(&with(ENABLED, "[sometimes]"), "huge pages", ["sometimes"]);
    let none = Tree::healthy().without("sys/kernel/mm/transparent_hugepage");
    skips(&facts(&none, healthy_gpu()), "huge pages", []);
}

#[test]
fn making_huge_pages() {
    good(&with(DEFRAG, "[always] never"), "making huge pages", []);
    warns(
        &with(DEFRAG, "always defer defer+madvise madvise [never]"),
        "making huge pages",
        ["/sys/kernel/mm/transparent_hugepage/defrag"],
    );
    // Does not apply without huge pages.
    let off = with(ENABLED, "always madvise [never]");
    assert!(
        !checks::run_all(&off)
            .iter()
            .any(|f| f.check == "making huge pages")
    );
}

#[test]
fn wsl() {
    let version = "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@host)\n";
    warns(
        &with("proc/version", version),
        "WSL",
        ["limits", ".wslconfig"],
    );
    good(&facts(&Tree::healthy(), healthy_gpu()), "WSL", []);
}

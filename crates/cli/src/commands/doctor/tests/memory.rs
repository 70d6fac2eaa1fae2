//! The host's memory.

use pinlane_report::DoctorStatus::{Ok as Good, Skip, Warn};

use super::*;

const ENABLED: &str = "sys/kernel/mm/transparent_hugepage/enabled";
const DEFRAG: &str = "sys/kernel/mm/transparent_hugepage/defrag";

fn with(path: &str, text: &str) -> Facts {
    facts(&Tree::healthy().with(path, text), healthy_gpu())
}

#[test]
fn memory_that_is_left() {
    let meminfo = |available: u64| {
        with(
            "proc/meminfo",
            &format!("MemTotal: 134217728 kB\nMemAvailable: {available} kB\n"),
        )
    };
    expect(
        &meminfo(64 << 20),
        "memory available",
        Good,
        &["64 GiB of 128 GiB"],
    );
    expect(
        &meminfo(8 << 20),
        "memory available",
        Warn,
        &["8 GiB", "--sort=-rss"],
    );
    expect(
        &with("proc/meminfo", "MemTotal: 1 kB\n"),
        "memory available",
        Skip,
        &[],
    );
    // Little in all, though most of it is left.
    let small = with(
        "proc/meminfo",
        "MemTotal: 1048576 kB\nMemAvailable: 1000000 kB\n",
    );
    expect(&small, "memory available", Warn, &[]);
}

#[test]
fn huge_pages() {
    expect(
        &with(ENABLED, "[always] madvise never"),
        "huge pages",
        Good,
        &["always"],
    );
    expect(
        &with(ENABLED, "always madvise [never]\n"),
        "huge pages",
        Warn,
        &["echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"],
    );
    expect(&with(ENABLED, "what"), "huge pages", Skip, &[]);
    expect(
        &with(ENABLED, "[sometimes]"),
        "huge pages",
        Skip,
        &["sometimes"],
    );
    let none = Tree::healthy().without("sys/kernel/mm/transparent_hugepage");
    expect(&facts(&none, healthy_gpu()), "huge pages", Skip, &[]);
}

#[test]
fn making_huge_pages() {
    expect(
        &with(DEFRAG, "[always] never"),
        "making huge pages",
        Good,
        &[],
    );
    expect(
        &with(DEFRAG, "always defer defer+madvise madvise [never]"),
        "making huge pages",
        Warn,
        &["/sys/kernel/mm/transparent_hugepage/defrag"],
    );
    // It says nothing where there are none.
    let off = with(ENABLED, "always madvise [never]");
    assert!(
        !checks::all(&off)
            .iter()
            .any(|f| f.check == "making huge pages")
    );
}

#[test]
fn wsl() {
    let version = "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@host)\n";
    expect(
        &with("proc/version", version),
        "WSL",
        Warn,
        &["limits", ".wslconfig"],
    );
    expect(&facts(&Tree::healthy(), healthy_gpu()), "WSL", Good, &[]);
}

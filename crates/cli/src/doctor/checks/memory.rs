//! The host's memory.

use pinlane_report::{DoctorFinding as Finding, DoctorGroup, short_size};

use crate::doctor::facts::host::Host;

const GROUP: DoctorGroup = DoctorGroup::Memory;

/// Less than this is little on any machine with a GPU.
const LITTLE_BYTES: u64 = 2 << 30;

/// And less than one part of this many of all memory.
const LITTLE_SHARE: u64 = 10;

pub(super) fn all(host: &Host) -> Vec<Finding> {
    let mut findings = vec![available(host), huge_pages(host)];
    findings.extend(defrag(host));
    findings.push(wsl(host));
    findings
}

fn available(host: &Host) -> Finding {
    const CHECK: &str = "memory available";
    let Some(bytes) = host.available_bytes else {
        return Finding::skip(GROUP, CHECK, "the system does not tell");
    };
    let all = host.memory_bytes.unwrap_or(0);
    let mut seen = short_size(bytes);
    if all > 0 {
        seen.push_str(&format!(" of {}", short_size(all)));
    }
    if bytes >= LITTLE_BYTES && bytes >= all / LITTLE_SHARE {
        return Finding::ok(GROUP, CHECK, seen);
    }
    let seen = format!("{seen}: little is left to be page-locked");
    Finding::warn(GROUP, CHECK, seen).remedy(
        "end what needs the most memory (`ps -eo pid,rss,comm --sort=-rss | head`), or \
         use a machine with more",
        65,
    )
}

fn huge_pages(host: &Host) -> Finding {
    const CHECK: &str = "huge pages";
    match host.huge_pages.as_deref() {
        None => Finding::skip(GROUP, CHECK, "the system does not tell"),
        Some(word @ ("always" | "madvise")) => Finding::ok(GROUP, CHECK, word),
        Some("never") => Finding::warn(
            GROUP,
            CHECK,
            "never: page-locking large buffers takes many times as long",
        )
        .remedy(
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
            55,
        ),
        Some(word) => Finding::skip(
            GROUP,
            CHECK,
            format!("`{word}` is no setting that is known"),
        ),
    }
}

/// Of interest where huge pages are on.
fn defrag(host: &Host) -> Option<Finding> {
    const CHECK: &str = "making huge pages";
    if host.huge_pages.as_deref() == Some("never") {
        return None;
    }
    let word = host.huge_page_defrag.as_deref()?;
    Some(match word {
        "never" => Finding::warn(
            GROUP,
            CHECK,
            "never: on a machine that has run for long, few large buffers get them",
        )
        .remedy(
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/defrag",
            18,
        ),
        "always" | "defer" | "defer+madvise" | "madvise" => Finding::ok(GROUP, CHECK, word),
        word => Finding::skip(
            GROUP,
            CHECK,
            format!("`{word}` is no setting that is known"),
        ),
    })
}

fn wsl(host: &Host) -> Finding {
    const CHECK: &str = "WSL";
    match host.wsl {
        false => Finding::ok(GROUP, CHECK, "no: Linux by itself"),
        true => Finding::warn(GROUP, CHECK, "yes: Windows limits how much may be pinned").remedy(
            "run on Linux itself for large pinned buffers, or give WSL more memory (memory= in \
             %UserProfile%\\.wslconfig, then `wsl --shutdown`)",
            45,
        ),
    }
}

//! The host's memory.

use pinlane_report::{DoctorFinding as Finding, DoctorGroup, short_size};

use super::Check;
use crate::commands::doctor::facts::host::HostFacts;

const AVAILABLE: Check = Check(DoctorGroup::Memory, "memory available");
const HUGE_PAGES: Check = Check(DoctorGroup::Memory, "huge pages");
const DEFRAG: Check = Check(DoctorGroup::Memory, "making huge pages");
const WSL: Check = Check(DoctorGroup::Memory, "WSL");

/// Less than this is low on any machine with a GPU.
const LOW_BYTES: u64 = 2 << 30;

/// Less than 1 part in this many of all memory is low too.
const LOW_SHARE: u64 = 10;

pub(super) fn all(host: &HostFacts) -> Vec<Finding> {
    let mut findings = vec![available(host), huge_pages(host)];
    findings.extend(defrag(host));
    findings.push(wsl(host));
    findings
}

fn available(host: &HostFacts) -> Finding {
    let Some(bytes) = host.available_bytes else {
        return AVAILABLE.unknown();
    };
    let all = host.memory_bytes.unwrap_or(0);
    let mut seen = short_size(bytes);
    if all > 0 {
        seen.push_str(&format!(" of {}", short_size(all)));
    }
    if bytes >= LOW_BYTES && bytes >= all / LOW_SHARE {
        return AVAILABLE.ok(seen);
    }
    AVAILABLE
        .warn(format!("{seen}: little is left to pin"))
        .remedy(
            "stop the processes that use the most memory (`ps -eo pid,rss,comm --sort=-rss | head`), \
             or use a machine with more",
            65,
        )
}

fn huge_pages(host: &HostFacts) -> Finding {
    match host.huge_pages.as_deref() {
        None => HUGE_PAGES.unknown(),
        Some(setting @ ("always" | "madvise")) => HUGE_PAGES.ok(setting),
        Some("never") => HUGE_PAGES
            .warn("never: pinning large buffers takes many times as long")
            .remedy(
                "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
                55,
            ),
        Some(setting) => HUGE_PAGES.skip(format!("unknown setting `{setting}`")),
    }
}

/// Only matters if huge pages are on.
fn defrag(host: &HostFacts) -> Option<Finding> {
    if host.huge_pages.as_deref() == Some("never") {
        return None;
    }
    Some(match host.huge_page_defrag.as_deref()? {
        "never" => DEFRAG
            .warn("never: on a machine with a long uptime, few large buffers get huge pages")
            .remedy(
                "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/defrag",
                18,
            ),
        setting @ ("always" | "defer" | "defer+madvise" | "madvise") => DEFRAG.ok(setting),
        setting => DEFRAG.skip(format!("unknown setting `{setting}`")),
    })
}

fn wsl(host: &HostFacts) -> Finding {
    match host.wsl {
        false => WSL.ok("no"),
        true => WSL.warn("yes: Windows limits pinned memory").remedy(
            "use native Linux for large pinned buffers, or give WSL more memory (memory= in \
             %UserProfile%\\.wslconfig, then `wsl --shutdown`)",
            45,
        ),
    }
}

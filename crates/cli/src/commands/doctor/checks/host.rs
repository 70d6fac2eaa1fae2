//! Memory of the host, and limits of the process.

use pinlane_report::short_size;

use super::{Check, DoctorGroup, Finding, HostFacts};
use crate::commands::doctor::facts::host::Memlock;

const AVAILABLE: Check = Check(DoctorGroup::Memory, "memory available");
const HUGE_PAGES: Check = Check(DoctorGroup::Memory, "huge pages");
const DEFRAG: Check = Check(DoctorGroup::Memory, "making huge pages");
const WSL: Check = Check(DoctorGroup::Memory, "WSL");
const GROUP_MEMORY: Check = Check(DoctorGroup::Limits, "control group memory");
const CPUS: Check = Check(DoctorGroup::Limits, "CPUs");
const LOCKED_MEMORY: Check = Check(DoctorGroup::Limits, "locked memory");
const BUDGET: Check = Check(DoctorGroup::Limits, "pinned budget");

/// Less than this is low on any machine with a GPU.
const LOW_BYTES: u64 = 2 << 30;

/// Less than 1 part in this many of all memory is low too.
const LOW_SHARE: u64 = 10;

/// Less than 1 part in this many left in a control group is low.
const GROUP_LOW_SHARE: u64 = 8;

/// Fewer CPUs cannot saturate a fast link from pageable memory.
const CPUS_ENOUGH: f64 = 8.0;

/// A smaller budget is soon used up.
const BUDGET_ENOUGH: u64 = 1 << 30;

pub(super) fn all(host: &HostFacts) -> Vec<Finding> {
    let mut findings = vec![available(host), huge_pages(host)];
    findings.extend(defrag(host));
    findings.extend([wsl(host), group_memory(host), cpus(host)]);
    findings.extend([locked_memory(host), budget(host)]);
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
    AVAILABLE.warn(
        format!("{seen}: little is left to pin"),
        "stop the processes that use the most memory (`ps -eo pid,rss,comm --sort=-rss | head`), \
             or use a machine with more",
        65,
    )
}

fn huge_pages(host: &HostFacts) -> Finding {
    match host.huge_pages.as_deref() {
        None => HUGE_PAGES.unknown(),
        Some(setting @ ("always" | "madvise")) => HUGE_PAGES.ok(setting),
        Some("never") => HUGE_PAGES.warn(
            "never: pinning large buffers takes many times as long",
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
        "never" => DEFRAG.warn(
            "never: on a machine with a long uptime, few large buffers get huge pages",
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
        true => WSL.warn(
            "yes: Windows limits pinned memory",
            "use native Linux for large pinned buffers, or give WSL more memory (memory= in \
             %UserProfile%\\.wslconfig, then `wsl --shutdown`)",
            45,
        ),
    }
}

fn group_memory(host: &HostFacts) -> Finding {
    // Version 1 of control groups reports "no limit" as a huge number.
    let all = host.memory_bytes.unwrap_or(u64::MAX);
    let Some(memory) = host.group_memory.filter(|memory| memory.limit_bytes < all) else {
        return GROUP_MEMORY.ok("no limit below the machine's memory");
    };
    let (left, limit) = (memory.headroom_bytes, memory.limit_bytes);
    let seen = format!("{} left of {}", short_size(left), short_size(limit));
    if left >= (limit / GROUP_LOW_SHARE).max(1) {
        return GROUP_MEMORY.ok(seen);
    }
    GROUP_MEMORY.warn(
        format!("{seen}; pinned memory counts towards it"),
        "request more memory: `docker run --memory=…`, `sbatch --mem=…`, \
             resources.limits.memory of a pod",
        64,
    )
}

fn cpus(host: &HostFacts) -> Finding {
    let allowed = host.cpus.as_ref().map(|cpus| cpus.count() as f64);
    let both = allowed.into_iter().chain(host.group_cpus);
    let Some(usable) = both.min_by(f64::total_cmp) else {
        return CPUS.unknown();
    };
    let by = match host.group_cpus.is_some_and(|quota| Some(quota) < allowed) {
        true => "control group quota",
        false => "process affinity",
    };
    let seen = format!("{} ({by})", (usable * 10.0).round() / 10.0);
    if usable >= CPUS_ENOUGH {
        return CPUS.ok(seen);
    }
    CPUS.warn(
        format!("{seen}: too few to saturate a fast link from pageable memory"),
        "give the process at least 8 CPUs (`docker run --cpus=8`, `sbatch --cpus-per-task=8`, \
         `taskset`), or keep data in pinned memory, which needs none",
        42,
    )
}

/// On ordinary Linux NVIDIA's driver does not count the memory it pins, so the limit matters only on WSL.
fn locked_memory(host: &HostFacts) -> Finding {
    let needed = host.budget_bytes.as_ref().copied().unwrap_or(BUDGET_ENOUGH);
    let bytes = match host.memlock {
        None => return LOCKED_MEMORY.unknown(),
        Some(Memlock::Unlimited) => return LOCKED_MEMORY.ok("unlimited"),
        Some(Memlock::Bytes(bytes)) => bytes,
    };
    let size = short_size(bytes);
    if host.may_lock {
        return LOCKED_MEMORY.ok(format!("{size}, but CAP_IPC_LOCK exempts this process"));
    }
    if bytes >= needed {
        return LOCKED_MEMORY.ok(size);
    }
    if !host.wsl {
        let but = "limits RDMA, io_uring and mlock, but not memory that the driver pins";
        return LOCKED_MEMORY.ok(format!("{size}: {but}"));
    }
    LOCKED_MEMORY.warn(
        format!("{size}: less than the pinned budget"),
        "ulimit -l unlimited (for all sessions: `* - memlock unlimited` in \
         /etc/security/limits.conf; `docker run --ulimit memlock=-1`)",
        10,
    )
}

fn budget(host: &HostFacts) -> Finding {
    let chosen = host.pinned_limit.as_deref();
    let chosen = chosen.filter(|value| !value.trim().is_empty());
    let bytes = match &host.budget_bytes {
        Ok(bytes) => *bytes,
        Err(reason) => {
            let remedy = "unset PINLANE_PINNED_LIMIT, or export PINLANE_PINNED_LIMIT=8GiB";
            return BUDGET.fail(reason.clone(), remedy, 97);
        }
    };
    let size = match bytes {
        u64::MAX => "no limit".to_owned(),
        bytes => short_size(bytes),
    };
    let by = match chosen {
        Some(_) => "set by PINLANE_PINNED_LIMIT",
        None => "half of the available memory, shared by the job's processes here",
    };
    let seen = format!("{size}, {by}");
    let left = host.group_memory.map(|memory| memory.headroom_bytes);
    let left = host.available_bytes.into_iter().chain(left).min();
    if chosen.is_some() && left.is_some_and(|left| bytes > left) {
        return BUDGET.warn(
            format!("{seen}, more than is available"),
            "unset PINLANE_PINNED_LIMIT, or set it to what the machine can spare",
            62,
        );
    }
    if bytes < BUDGET_ENOUGH {
        let remedy = match chosen {
            Some(_) => "raise or unset PINLANE_PINNED_LIMIT",
            None => "free memory, or set the limit: export PINLANE_PINNED_LIMIT=2GiB",
        };
        return BUDGET.warn(format!("{seen}: low"), remedy, 63);
    }
    BUDGET.ok(seen)
}

//! Limits of the process.

use pinlane_report::{DoctorFinding as Finding, DoctorGroup, short_size};

use super::Check;
use crate::commands::doctor::facts::host::{HostFacts, Memlock};

const GROUP_MEMORY: Check = Check(DoctorGroup::Limits, "control group memory");
const CPUS: Check = Check(DoctorGroup::Limits, "CPUs");
const LOCKED_MEMORY: Check = Check(DoctorGroup::Limits, "locked memory");
const BUDGET: Check = Check(DoctorGroup::Limits, "pinned budget");

/// Less than 1 part in this many left in a control group is low.
const LOW_SHARE: u64 = 8;

/// Fewer CPUs cannot saturate a fast link from pageable memory.
const CPUS_ENOUGH: f64 = 8.0;

/// A smaller budget is soon used up.
const BUDGET_ENOUGH: u64 = 1 << 30;

pub(super) fn all(host: &HostFacts) -> Vec<Finding> {
    vec![
        group_memory(host),
        cpus(host),
        locked_memory(host),
        budget(host),
    ]
}

fn group_memory(host: &HostFacts) -> Finding {
    // Version 1 of control groups reports "no limit" as a huge number.
    let all = host.memory_bytes.unwrap_or(u64::MAX);
    let Some(memory) = host.group_memory.filter(|memory| memory.limit_bytes < all) else {
        return GROUP_MEMORY.ok("no limit below the machine's memory");
    };
    let (left, limit) = (memory.headroom_bytes, memory.limit_bytes);
    let seen = format!("{} left of {}", short_size(left), short_size(limit));
    if left >= (limit / LOW_SHARE).max(1) {
        return GROUP_MEMORY.ok(seen);
    }
    GROUP_MEMORY
        .warn(format!("{seen}; pinned memory counts towards it"))
        .remedy(
            "request more memory: `docker run --memory=…`, `sbatch --mem=…`, \
             resources.limits.memory of a pod",
            64,
        )
}

fn cpus(host: &HostFacts) -> Finding {
    let allowed = host.cpus.as_ref().map(|cpus| cpus.count() as f64);
    let Some(usable) = allowed
        .into_iter()
        .chain(host.group_cpus)
        .min_by(f64::total_cmp)
    else {
        return CPUS.unknown();
    };
    let number = format!("{}", (usable * 10.0).round() / 10.0);
    let seen = match host.group_cpus.filter(|quota| Some(*quota) < allowed) {
        Some(_) => format!("{number} (control group quota)"),
        None => format!("{number} (process affinity)"),
    };
    if usable >= CPUS_ENOUGH {
        return CPUS.ok(seen);
    }
    CPUS.warn(format!(
        "{seen}: too few to saturate a fast link from pageable memory"
    ))
    .remedy(
        "give the process at least 8 CPUs (`docker run --cpus=8`, `sbatch --cpus-per-task=8`, \
         `taskset`), or keep data in pinned memory, which needs none",
        42,
    )
}

/// NVIDIA's driver does not count the memory it pins; others do.
fn locked_memory(host: &HostFacts) -> Finding {
    let needed = host.budget_bytes.as_ref().copied().unwrap_or(BUDGET_ENOUGH);
    match host.memlock {
        None => LOCKED_MEMORY.unknown(),
        Some(Memlock::Unlimited) => LOCKED_MEMORY.ok("unlimited"),
        Some(Memlock::Bytes(bytes)) if host.may_lock => LOCKED_MEMORY.ok(format!(
            "{}, but CAP_IPC_LOCK exempts this process",
            short_size(bytes)
        )),
        Some(Memlock::Bytes(bytes)) if bytes >= needed => LOCKED_MEMORY.ok(short_size(bytes)),
        Some(Memlock::Bytes(bytes)) => LOCKED_MEMORY
            .warn(format!(
                "{}: limits RDMA, io_uring and mlock, but on ordinary Linux not NVIDIA's driver",
                short_size(bytes)
            ))
            .remedy(
                "ulimit -l unlimited (for all sessions: `* - memlock unlimited` in \
                 /etc/security/limits.conf; `docker run --ulimit memlock=-1`)",
                10,
            ),
    }
}

fn budget(host: &HostFacts) -> Finding {
    let chosen = host.variables.pinned_limit.as_deref();
    let chosen = chosen.filter(|value| !value.trim().is_empty());
    let bytes = match &host.budget_bytes {
        Ok(bytes) => *bytes,
        Err(reason) => {
            return BUDGET.fail(reason.clone()).remedy(
                "unset PINLANE_PINNED_LIMIT, or export PINLANE_PINNED_LIMIT=8GiB",
                97,
            );
        }
    };
    let size = match bytes {
        u64::MAX => "no limit".to_owned(),
        bytes => short_size(bytes),
    };
    let seen = match chosen {
        Some(_) => format!("{size}, set by PINLANE_PINNED_LIMIT"),
        None => {
            format!("{size}, half of the available memory, shared by the job's processes here")
        }
    };
    let left = host.group_memory.map(|memory| memory.headroom_bytes);
    let left = host.available_bytes.into_iter().chain(left).min();
    if chosen.is_some() && left.is_some_and(|left| bytes > left) {
        return BUDGET
            .warn(format!("{seen}, more than is available"))
            .remedy(
                "unset PINLANE_PINNED_LIMIT, or set it to what the machine can spare",
                62,
            );
    }
    if bytes < BUDGET_ENOUGH {
        let remedy = match chosen {
            Some(_) => "raise or unset PINLANE_PINNED_LIMIT",
            None => "free memory, or set the limit: export PINLANE_PINNED_LIMIT=2GiB",
        };
        return BUDGET.warn(format!("{seen}: low")).remedy(remedy, 63);
    }
    BUDGET.ok(seen)
}

//! What the process may use.

use pinlane_report::{DoctorFinding as Finding, DoctorGroup, short_size};

use crate::doctor::facts::host::{Host, Memlock};

const GROUP: DoctorGroup = DoctorGroup::Limits;

/// One part of this many left in a control group is little.
const LITTLE_SHARE: u64 = 8;

/// Fewer CPUs than this do not fill a fast link from ordinary memory.
const CPUS_ENOUGH: f64 = 8.0;

/// A smaller budget is soon used up.
const BUDGET_ENOUGH: u64 = 1 << 30;

pub(super) fn all(host: &Host) -> Vec<Finding> {
    vec![
        group_memory(host),
        cpus(host),
        locked_memory(host),
        budget(host),
    ]
}

fn group_memory(host: &Host) -> Finding {
    const CHECK: &str = "control group memory";
    // Version 1 writes "no limit" as a number that no machine has.
    let all = host.memory_bytes.unwrap_or(u64::MAX);
    let Some(memory) = host.group_memory.filter(|memory| memory.limit_bytes < all) else {
        return Finding::ok(GROUP, CHECK, "no limit below the machine's memory");
    };
    let (left, limit) = (memory.headroom_bytes, memory.limit_bytes);
    let seen = format!("{} left of {}", short_size(left), short_size(limit));
    if left >= (limit / LITTLE_SHARE).max(1) {
        return Finding::ok(GROUP, CHECK, seen);
    }
    Finding::warn(GROUP, CHECK, format!("{seen}; pinned memory counts in it")).remedy(
        "ask for more memory: `docker run --memory=…`, `sbatch --mem=…`, \
         resources.limits.memory of a pod",
        64,
    )
}

fn cpus(host: &Host) -> Finding {
    const CHECK: &str = "CPUs";
    let allowed = host.cpus.as_ref().map(|cpus| cpus.count() as f64);
    let Some(usable) = allowed
        .into_iter()
        .chain(host.group_cpus)
        .min_by(f64::total_cmp)
    else {
        return Finding::skip(GROUP, CHECK, "the system does not tell");
    };
    let number = format!("{}", (usable * 10.0).round() / 10.0);
    let seen = match host.group_cpus.filter(|quota| Some(*quota) < allowed) {
        Some(_) => format!("{number} by the control group's quota"),
        None => format!("{number} by the process's affinity"),
    };
    if usable >= CPUS_ENOUGH {
        return Finding::ok(GROUP, CHECK, seen);
    }
    let seen = format!("{seen}: few to fill a fast link from ordinary memory");
    Finding::warn(GROUP, CHECK, seen).remedy(
        "give the process 8 CPUs or more (`docker run --cpus=8`, `sbatch --cpus-per-task=8`, \
         `taskset`), or keep data in pinned memory, which needs none",
        42,
    )
}

/// NVIDIA's driver does not count what it pins; others do.
fn locked_memory(host: &Host) -> Finding {
    const CHECK: &str = "locked memory";
    let needed = host.budget_bytes.as_ref().copied().unwrap_or(BUDGET_ENOUGH);
    match host.memlock {
        None => Finding::skip(GROUP, CHECK, "the system does not tell"),
        Some(Memlock::Unlimited) => Finding::ok(GROUP, CHECK, "unlimited"),
        Some(Memlock::Bytes(bytes)) if host.may_lock => {
            let seen = format!("{}, which does not bind this process (CAP_IPC_LOCK)", short_size(bytes));
            Finding::ok(GROUP, CHECK, seen)
        }
        Some(Memlock::Bytes(bytes)) if bytes >= needed => Finding::ok(GROUP, CHECK, short_size(bytes)),
        Some(Memlock::Bytes(bytes)) => Finding::warn(
            GROUP,
            CHECK,
            format!(
                "{}: NVIDIA's driver does not count its pins on ordinary Linux, but RDMA, io_uring and \
                 mlock do",
                short_size(bytes)
            ),
        )
        .remedy(
            "ulimit -l unlimited (for all sessions: `* - memlock unlimited` in \
             /etc/security/limits.conf; `docker run --ulimit memlock=-1`)",
            10,
        ),
    }
}

fn budget(host: &Host) -> Finding {
    const CHECK: &str = "pinned budget";
    let chosen = host.variables.pinned_limit.as_deref();
    let chosen = chosen.filter(|value| !value.trim().is_empty());
    let bytes = match &host.budget_bytes {
        Ok(bytes) => *bytes,
        Err(reason) => {
            return Finding::fail(GROUP, CHECK, reason.clone()).remedy(
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
        Some(_) => format!("{size}, by PINLANE_PINNED_LIMIT"),
        None => format!("{size}, half of what is available, shared among the job's processes here"),
    };
    let left = host.group_memory.map(|memory| memory.headroom_bytes);
    let left = host.available_bytes.into_iter().chain(left).min();
    if chosen.is_some() && left.is_some_and(|left| bytes > left) {
        let seen = format!("{seen}, which is more than there is");
        return Finding::warn(GROUP, CHECK, seen).remedy(
            "unset PINLANE_PINNED_LIMIT, or set it to what the machine can spare",
            62,
        );
    }
    if bytes < BUDGET_ENOUGH {
        let remedy = match chosen {
            Some(_) => "raise PINLANE_PINNED_LIMIT, or unset it",
            None => "free memory, or set what may be pinned: export PINLANE_PINNED_LIMIT=2GiB",
        };
        return Finding::warn(GROUP, CHECK, format!("{seen}: little")).remedy(remedy, 63);
    }
    Finding::ok(GROUP, CHECK, seen)
}

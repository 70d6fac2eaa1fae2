//! RLIMIT_MEMLOCK: a hint when pinning has failed, never a cap.
//!
//! On ordinary Linux, NVIDIA's driver does not count its pins against the limit, so it says nothing about
//! how much can be pinned. If a pin fails anyway, the limit may be the cause.

use pinlane_driver::{Error, ErrorKind};

use super::Budget;

/// Mentions the limit in the error if it may be the cause. The budget includes the requested bytes.
pub(in crate::memory) fn explain(error: Error, requested_bytes: u64, budget: &Budget) -> Error {
    let others_bytes = budget.in_use_bytes().saturating_sub(requested_bytes);
    explain_with(error, requested_bytes, others_bytes, soft_limit())
}

fn explain_with(
    error: Error,
    requested_bytes: u64,
    in_use_bytes: u64,
    soft_limit: Option<u64>,
) -> Error {
    let may_be_why = matches!(
        error.kind,
        ErrorKind::OutOfMemory | ErrorKind::RegistrationRefused
    );
    let limit = match soft_limit {
        Some(limit) if may_be_why && limit < in_use_bytes.saturating_add(requested_bytes) => limit,
        _ => return error,
    };
    let between = if error.detail.is_empty() { "" } else { "; " };
    let detail = format!(
        "{}{between}{requested_bytes} bytes were to be page-locked beside {in_use_bytes}, and \
         RLIMIT_MEMLOCK is {limit}: try `ulimit -l unlimited`",
        error.detail
    );
    error.with_detail(detail)
}

/// `None` if there is no limit, or it cannot be queried.
fn soft_limit() -> Option<u64> {
    if cfg!(miri) {
        return None; // miri has no resource limits
    }
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` outlives the call.
    let code = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) };
    (code == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_too_low_is_named_with_its_remedy() {
        let error = |kind| Error::new(kind, "pin").with_detail("why");
        let explained = |kind, limit| explain_with(error(kind), 100, 20, limit).detail;
        let detail = explained(ErrorKind::OutOfMemory, Some(119));
        for part in [
            "why; ",
            "100 bytes",
            "beside 20",
            "is 119",
            "ulimit -l unlimited",
        ] {
            assert!(detail.contains(part), "{detail}");
        }
        assert!(explained(ErrorKind::RegistrationRefused, Some(0)).contains("ulimit"));
        assert_eq!(explained(ErrorKind::OutOfMemory, Some(120)), "why");
        assert_eq!(explained(ErrorKind::OutOfMemory, None), "why");
        assert_eq!(explained(ErrorKind::DeviceLost, Some(0)), "why");
    }
}

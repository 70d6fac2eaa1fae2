//! Limit on page-locked memory, so that pinning never starves the machine.
//!
//! ```text
//!   Budget          usage, and waiting for memory             (this file, notifier)
//!   idle_memory     memory kept for reuse, given up when the budget is short
//!   limit_sources   where the limit comes from: memory available now in /proc/meminfo,
//!     cgroup        control groups,
//!     environment_variables   and a variable of the user; launchers say how many processes share it
//!   memlock_hint    mentions RLIMIT_MEMLOCK when a pin fails
//! ```

mod cgroup;
mod environment_variables;
mod idle_memory;
mod limit_sources;
mod memlock_hint;
mod notifier;

#[cfg(test)]
mod tests;

pub use cgroup::{ControlGroups, GroupMemory};
pub(crate) use idle_memory::PendingMemory;
pub(super) use idle_memory::{Frees, IdleMemory};
pub use limit_sources::available_bytes;
pub(super) use memlock_hint::explain;

use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use self::idle_memory::{IdleList, PendingList};
use self::limit_sources::Rule;
use self::notifier::Notifier;
use crate::sync::lock;
use crate::{Error, Result};

/// A cap on page-locked memory. Cheap to clone; all clones are the same budget.
///
/// Every buffer the library page-locks counts, in whole pages, until it is unlocked: pinned,
/// write-combined, mapped and registered buffers, and the memory of pools. So does memory of dropped
/// buffers that a device keeps for new ones ([`idle_bytes`](Self::idle_bytes)), but it never stands in the
/// way: a call that would exceed the limit frees as much of it as it needs. If that is not enough, it waits for
/// what is [about to be released](crate::Device::release_when_idle). Then it returns [`Error::OverBudget`] without
/// asking the driver for memory.
///
/// Devices share [`Budget::process`] unless they are opened [`with_budget`](crate::Device::with_budget).
/// Its limit is half of the available memory (of the machine, or of the process's control group if that is
/// less), divided by the number of processes that a launcher reports for this machine (`LOCAL_WORLD_SIZE`
/// and similar). In addition, no single buffer may take more than half of what is still available, since
/// other processes may have taken memory in the meantime. That figure is read from the system, and counts
/// for a tenth of a second and for as many buffers as take a sixteenth of it, at most 4 MiB.
/// `PINLANE_PINNED_LIMIT` overrides the limit: bytes, `512M`, `3.5GiB`, or `none`.
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// # let sim = pinlane_sim::Sim::new(pinlane_model::Profile::builtin("pcie3-x16").unwrap());
/// use pinlane::{Budget, Device, Error};
///
/// let budget = Budget::with_limit(1 << 20);
/// let device = Device::with_budget(sim.driver(), &budget);
/// let small = device.pinned::<u8>(4096)?;
/// assert_eq!(budget.in_use_bytes(), 4096);
/// let large = device.pinned::<u8>(2 << 20);
/// assert!(matches!(large, Err(Error::OverBudget { limit_bytes: 1_048_576, .. })));
/// # drop(small);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Budget {
    account: Arc<Account>,
}

struct Account {
    rule: Mutex<Arc<Rule>>,
    in_use_bytes: Mutex<u64>,
    notifier: Notifier,
    idle: IdleList,
    pending: PendingList,
}

/// Bytes reserved from a [`Budget`], released on drop.
#[must_use = "dropping it gives the bytes back"]
pub struct Reservation {
    account: Arc<Account>,
    bytes: u64,
}

/// Polling interval of a wait, since completed transfers and other processes send no notification.
const LOOK_EVERY: Duration = Duration::from_millis(1);

impl Budget {
    /// The budget that all devices of the process share by default.
    #[must_use]
    pub fn process() -> Self {
        static PROCESS: LazyLock<Budget> = LazyLock::new(|| Budget::new(Rule::of_process()));
        PROCESS.clone()
    }

    /// A budget of `bytes`, independent of the machine's memory.
    #[must_use]
    pub fn with_limit(bytes: u64) -> Self {
        Self::new(Rule::Fixed(bytes))
    }

    fn new(rule: Rule) -> Self {
        Self {
            account: Arc::new(Account {
                rule: Mutex::new(Arc::new(rule)),
                in_use_bytes: Mutex::new(0),
                notifier: Notifier::default(),
                idle: IdleList::default(),
                pending: PendingList::default(),
            }),
        }
    }

    /// The limit; `u64::MAX` if there is none. Fails if `PINLANE_PINNED_LIMIT` is invalid.
    pub fn limit_bytes(&self) -> Result<u64> {
        Ok(self.account.rule().limit()?.bytes)
    }

    /// Sets another limit, for all that share this budget. What is page-locked already stays, except memory that
    /// nobody uses: that is freed as far as the new limit needs it. `u64::MAX` is no limit.
    ///
    /// ```
    /// # fn main() -> pinlane::Result<()> {
    /// # let device = pinlane::Device::sim("h200")?;
    /// use pinlane::{Budget, ErrorKind};
    ///
    /// let budget = Budget::with_limit(1 << 20);
    /// let device = device.limited_to(&budget);
    /// budget.set_limit(4096);
    /// let error = device.pinned::<u8>(8192).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::OverBudget);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_limit(&self, bytes: u64) {
        *lock(&self.account.rule) = Arc::new(Rule::Fixed(bytes));
        let over_bytes = self.in_use_bytes().saturating_sub(bytes);
        let free_bytes = over_bytes.min(self.idle_bytes());
        if free_bytes > 0 {
            self.account.idle.free(free_bytes, Frees::AllAnd(None));
        }
        // Those that wait may have room now.
        self.account.notifier.ring();
    }

    /// Bytes currently page-locked, idle ones included.
    #[must_use]
    pub fn in_use_bytes(&self) -> u64 {
        *self.account.in_use()
    }

    /// Bytes currently page-locked that no buffer uses: devices keep them for new buffers, and free them when
    /// the budget is short and with [`Device::trim`](crate::Device::trim). Pools of the program do not count.
    #[must_use]
    pub fn idle_bytes(&self) -> u64 {
        self.account.idle.bytes()
    }

    /// Reserves `bytes` for memory that is page-locked outside this library. The library's own buffers
    /// reserve theirs themselves.
    pub fn reserve(&self, bytes: u64) -> Result<Reservation> {
        self.reserve_freeing(bytes, Frees::AllAnd(None), true)
    }

    /// Reserves `bytes`. Frees idle memory if that makes room for them. Otherwise, if it `may_wait`, waits for
    /// pending memory and tries again.
    pub(super) fn reserve_freeing(
        &self,
        bytes: u64,
        frees: Frees<'_>,
        mut may_wait: bool,
    ) -> Result<Reservation> {
        loop {
            let over = match self.reserve_unused(bytes) {
                Err(error @ Error::OverBudget { .. }) => error,
                result => return result,
            };
            // Of what is freed, the machine's figures may give back only half. So this may take a few rounds,
            // each of which frees something.
            if self.make_room(&over, frees) {
                continue;
            }
            // Once: that releases all that was pending at the call.
            if !std::mem::take(&mut may_wait) || never_fits(&over) || !self.release_pending() {
                return Err(over);
            }
        }
    }

    /// Reserves `bytes` without freeing idle memory.
    fn reserve_unused(&self, bytes: u64) -> Result<Reservation> {
        let rule = self.account.rule();
        let limit = rule.limit()?;
        let more_bytes = rule.more_bytes(limit, bytes); // outside the lock, since it reads files
        let mut in_use = self.account.in_use();
        let limit_bytes = limit.bytes.min(in_use.saturating_add(more_bytes));
        match in_use.checked_add(bytes) {
            Some(sum) if sum <= limit_bytes => *in_use = sum,
            _ => {
                return Err(Error::OverBudget {
                    requested_bytes: bytes,
                    in_use_bytes: *in_use,
                    limit_bytes,
                    remedy: rule.remedy(),
                });
            }
        }
        Ok(Reservation {
            account: Arc::clone(&self.account),
            bytes,
        })
    }

    /// Frees idle memory for a request that was refused. Frees nothing and returns `false` if there is less of
    /// it than the request is over.
    fn make_room(&self, over: &Error, frees: Frees<'_>) -> bool {
        let &Error::OverBudget {
            requested_bytes,
            in_use_bytes,
            limit_bytes,
            ..
        } = over
        else {
            return false;
        };
        let short_bytes = in_use_bytes
            .saturating_add(requested_bytes)
            .saturating_sub(limit_bytes);
        !never_fits(over) && self.account.idle.free(short_bytes, frees)
    }

    /// Frees all memory that devices keep for reuse. Returns whether there was any.
    pub(crate) fn free_idle(&self) -> bool {
        let bytes = self.account.idle.bytes();
        bytes > 0 && self.account.idle.free(bytes, Frees::AllAnd(None))
    }

    /// Waits until page-locked memory that is pending now is released. Returns `false` if there is nothing to
    /// wait for.
    pub(crate) fn release_pending(&self) -> bool {
        self.account.pending.release()
    }

    /// Waits for this memory when there is no room, as long as it exists.
    pub(crate) fn may_wait_for(&self, pending: Weak<dyn PendingMemory>) {
        self.account.pending.add(pending);
    }

    /// Counts this memory as idle, and frees it when there is no room, as long as it exists.
    pub(super) fn may_free(&self, idle: Weak<dyn IdleMemory>) {
        self.account.idle.add(idle);
    }

    /// Like [`reserve`](Self::reserve), but waits up to `timeout` for memory to be released.
    pub fn reserve_within(&self, bytes: u64, timeout: Duration) -> Result<Reservation> {
        let attempt = || self.reserve_freeing(bytes, Frees::AllAnd(None), false);
        self.retry_within(timeout, attempt)
    }

    /// Retries `attempt` until it fits the budget, the timeout expires, or waiting cannot help.
    pub(crate) fn retry_within<T>(
        &self,
        timeout: Duration,
        attempt: impl Fn() -> Result<T>,
    ) -> Result<T> {
        // A deadline too large for the clock means no deadline.
        let deadline = Instant::now().checked_add(timeout);
        loop {
            let listener = self.account.notifier.listen();
            let over = match attempt() {
                Err(error @ Error::OverBudget { .. }) => error,
                result => return result,
            };
            let left = deadline.map_or(LOOK_EVERY, |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if left.is_zero() || self.is_hopeless(&over) {
                return Err(over);
            }
            listener.wait(left.min(LOOK_EVERY));
        }
    }

    /// Whether the request would not fit even if everything else were released.
    fn is_hopeless(&self, over: &Error) -> bool {
        matches!((over, self.limit_bytes()), (Error::OverBudget { requested_bytes, .. }, Ok(limit))
            if *requested_bytes > limit)
    }

    /// Wakes waiters, because memory was released.
    pub(crate) fn ring(&self) {
        self.account.notifier.ring();
    }
}

/// Whether a request that was refused is over the limit by itself, so that freeing does not help.
fn never_fits(over: &Error) -> bool {
    matches!(over, Error::OverBudget { requested_bytes, limit_bytes, .. } if requested_bytes > limit_bytes)
}

impl Account {
    fn rule(&self) -> Arc<Rule> {
        Arc::clone(&lock(&self.rule))
    }

    fn in_use(&self) -> MutexGuard<'_, u64> {
        lock(&self.in_use_bytes)
    }
}

impl Reservation {
    /// Number of bytes reserved.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Leaks the reservation: the memory stays page-locked, and counted, for good.
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        *self.account.in_use() -= self.bytes;
        self.account.notifier.ring();
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("limit_bytes", &self.limit_bytes())
            .field("in_use_bytes", &self.in_use_bytes())
            .finish()
    }
}

//! The clocks of host threads that take part in a run.
//!
//! Each such thread has a clock of its own, and its calls take effect by that clock: work that it submits starts no
//! earlier. Devices are simulated up to the slowest thread that runs, since that one may submit work next.
//! When all of them wait, time passes to the next event. So the timeline does not depend on how the threads are
//! scheduled in real time.
//!
//! ```text
//!   thread 1   ──submit──submit──submit─────┤ blocked until a signal
//!   thread 2   ──wait for an event ┄┄┄┄┄┄┄┄┄┄┄┄
//!   thread 3   ──host work──────────────────────────
//!   devices    ════════════════════════╡ no further than thread 1, until it waits or blocks
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::sync::MutexGuard;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pinlane_driver::{Call, Result, ThreadClocks};

use crate::machine_lock::Machine;
use crate::state::State;
use crate::stream::StreamPoint;

/// Threads that take part in a run.
#[derive(Default)]
pub(crate) struct HostThreads {
    list: Vec<HostThread>,
    /// The thread that holds the lock of the machine, if it takes part.
    current: Option<u64>,
    /// When each signal was posted and not taken.
    signals: BTreeMap<u64, VecDeque<u64>>,
    last_number: u64,
}

pub(crate) struct HostThread {
    number: u64,
    /// `None` until it has started.
    id: Option<ThreadId>,
    clock_ns: u64,
    activity: Activity,
    /// The time that it waits for others to reach.
    reaching_ns: Option<u64>,
    /// Whether devices wait for it; not while it seems to be blocked outside the simulator.
    counts: bool,
    /// It seemed to be blocked before.
    was_silent: bool,
    /// Changes whenever the thread shows that it is not blocked.
    signs_of_life: u64,
    /// Another thread started it and goes on from its time.
    is_joined: bool,
}

enum Activity {
    /// It may submit work at any time from its clock on.
    Running,
    /// It waits for these points, for no longer than the limit.
    Waiting {
        points: Vec<StreamPoint>,
        limit_ns: u64,
    },
    /// It waits for a signal.
    Blocked(u64),
    /// It waits for something that has no time here.
    Away,
}

impl HostThread {
    fn runs(&self) -> bool {
        self.counts && matches!(self.activity, Activity::Running)
    }

    /// Its next call takes effect no earlier than this; of two at once, the lower number is first.
    fn next_call(&self) -> (u64, u64) {
        (self.reaching_ns.unwrap_or(self.clock_ns), self.number)
    }

    /// Goes on, no earlier than this.
    fn resume(&mut self, at_ns: u64) {
        self.clock_ns = self.clock_ns.max(at_ns);
        self.activity = Activity::Running;
        self.signs_of_life += 1;
    }

    /// The end of its wait.
    fn limit_ns(&self) -> Option<u64> {
        match self.activity {
            Activity::Waiting { limit_ns, .. } if limit_ns < u64::MAX => Some(limit_ns),
            _ => None,
        }
    }
}

impl HostThreads {
    /// Notes which thread holds the lock.
    pub(crate) fn identify(&mut self) {
        if self.list.is_empty() {
            self.current = None;
            return;
        }
        let id = Some(std::thread::current().id());
        let thread = self.list.iter().find(|thread| thread.id == id);
        self.current = thread.map(|thread| thread.number);
    }

    /// The thread that holds the lock has made a call: it is not blocked.
    pub(crate) fn show_life(&mut self, now_ns: u64) {
        if let Some(thread) = self.current_mut() {
            thread.signs_of_life += 1;
            if !thread.counts {
                thread.counts = true;
                thread.clock_ns = thread.clock_ns.max(now_ns);
            }
        }
    }

    /// The thread that holds the lock, if it takes part.
    pub(crate) fn current(&self) -> Option<&HostThread> {
        self.list.iter().find(|it| Some(it.number) == self.current)
    }

    fn current_mut(&mut self) -> Option<&mut HostThread> {
        let current = self.current;
        self.list.iter_mut().find(|it| Some(it.number) == current)
    }

    /// How far devices may be simulated while threads run; `None` if none runs.
    pub(crate) fn horizon_ns(&self) -> Option<u64> {
        let running = self.list.iter().filter(|thread| thread.runs());
        let slowest_ns = running.map(|thread| thread.clock_ns).min()?;
        Some(slowest_ns.min(self.first_limit_ns()))
    }

    /// When the first wait ends at the latest.
    fn first_limit_ns(&self) -> u64 {
        let limits = self.list.iter().filter_map(HostThread::limit_ns);
        limits.min().unwrap_or(u64::MAX)
    }

    /// Ends the waits that last no longer than this. Returns whether there were any.
    pub(crate) fn end_waits(&mut self, now_ns: u64) -> bool {
        let mut ended = false;
        for thread in &mut self.list {
            if let Some(limit_ns) = thread.limit_ns()
                && limit_ns <= now_ns
            {
                thread.resume(limit_ns);
                ended = true;
            }
        }
        ended
    }

    /// The slowest of the other threads that run.
    fn slowest_other(&mut self) -> Option<&mut HostThread> {
        let current = self.current;
        let others = self.list.iter_mut().filter(|it| Some(it.number) != current);
        let running = others.filter(|thread| thread.runs());
        running.min_by_key(|thread| thread.next_call())
    }

    fn add(&mut self, id: Option<ThreadId>, clock_ns: u64) -> u64 {
        self.last_number += 1;
        self.list.push(HostThread {
            number: self.last_number,
            id,
            clock_ns,
            activity: Activity::Running,
            reaching_ns: None,
            counts: true,
            was_silent: false,
            signs_of_life: 0,
            is_joined: id.is_none(),
        });
        self.last_number
    }
}

impl State {
    /// The clock of the thread that holds the lock.
    pub(crate) fn clock_ns(&self) -> u64 {
        let own_ns = self.threads.current().map(|thread| thread.clock_ns);
        own_ns.map_or(self.now_ns, |own_ns| own_ns.max(self.now_ns))
    }

    /// Advances the clock of the thread that holds the lock.
    pub(crate) fn spend(&mut self, ns: u64) {
        let then_ns = self.clock_ns().saturating_add(ns);
        match self.threads.current_mut() {
            Some(thread) => thread.clock_ns = then_ns,
            None => self.now_ns = then_ns,
        }
    }

    /// Lets threads go on whose wait has ended at this time.
    pub(crate) fn wake_threads(&mut self, at_ns: u64) {
        let wake_ns = self.config.profile.calls.wake_ns;
        let mut list = std::mem::take(&mut self.threads.list);
        for thread in &mut list {
            if let Activity::Waiting { points, limit_ns } = &thread.activity
                && points.iter().all(|&point| self.passed(point))
            {
                // By its own clock the thread may not have had to wait.
                let awake_ns = match at_ns > thread.clock_ns {
                    true => at_ns.saturating_add(wake_ns).min((*limit_ns).max(at_ns)),
                    false => thread.clock_ns,
                };
                thread.resume(awake_ns);
            }
        }
        self.threads.list = list;
    }
}

/// How long a thread that runs may go without a call before others stop waiting for it, in real time. Blocked
/// on something that the simulator does not see, it may well wait for one of them. A thread that was silent
/// that long before is given up after one slice.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time that counts towards it at once. A thread that is kept from its next call by the lock is not blocked.
const PATIENCE_SLICE: Duration = Duration::from_millis(50);

/// How long a thread has waited for another one.
#[derive(Default)]
struct Patience {
    /// The other thread, and how often it had shown that it is not blocked.
    other: Option<(u64, u64)>,
    since: Option<Instant>,
    slices: u32,
}

impl Patience {
    /// Whether the other thread has been silent for too long.
    fn is_over(&mut self, other: &HostThread) -> bool {
        let now = Instant::now();
        let patience = match other.was_silent {
            true => PATIENCE_SLICE,
            false => PATIENCE,
        };
        let other = Some((other.number, other.signs_of_life));
        if self.other != other {
            *self = Self {
                other,
                since: Some(now),
                slices: 0,
            };
        }
        if self
            .since
            .is_some_and(|since| now - since >= PATIENCE_SLICE)
        {
            self.slices += 1;
            self.since = Some(now);
        }
        PATIENCE_SLICE * self.slices >= patience
    }
}

impl Machine {
    /// [`wait`](Self::wait) of a thread that takes part: time passes only while no other one runs.
    pub(crate) fn wait_with_others<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        device: usize,
        call: Call,
        points: &[StreamPoint],
        limit_ns: u64,
    ) -> (MutexGuard<'a, State>, Result<bool>) {
        let passed = |state: &State| points.iter().all(|&point| state.passed(point));
        state.catch_up();
        if !passed(&state)
            && let Some(thread) = state.threads.current_mut()
        {
            thread.activity = Activity::Waiting {
                points: points.to_vec(),
                limit_ns,
            };
            self.wake_sleepers(&state);
        }
        let mut patience = Patience::default();
        let result = loop {
            state.catch_up();
            if let Err(error) = state.alive(device, call) {
                state.callbacks.wake_worker();
                break Err(error);
            }
            let current = state.threads.current();
            if passed(&state) || current.is_none_or(|it| matches!(it.activity, Activity::Running)) {
                break Ok(passed(&state));
            }
            if state.threads.slowest_other().is_some() {
                state = self.await_slowest(state, &mut patience);
                continue;
            }
            let first_limit_ns = state.threads.first_limit_ns();
            let mut stepped = false;
            if !state.held || first_limit_ns == u64::MAX {
                (state, stepped) = self.progress(state, first_limit_ns);
            }
            if !stepped {
                state.now_ns = state.now_ns.max(first_limit_ns);
                state.threads.end_waits(first_limit_ns);
                self.wake_sleepers(&state);
            }
        };
        if let Some(thread) = state.threads.current_mut() {
            thread.activity = Activity::Running;
        }
        (state, result)
    }

    /// Waits a moment for the slowest other thread that runs, or stops waiting for it until its next call.
    fn await_slowest<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        patience: &mut Patience,
    ) -> MutexGuard<'a, State> {
        if let Some(other) = state.threads.slowest_other()
            && patience.is_over(other)
        {
            other.counts = false;
            other.was_silent = true;
            self.wake_sleepers(&state);
            return state;
        }
        self.sleep(state, PATIENCE_SLICE).0
    }
}

impl ThreadClocks for Machine {
    fn enter(&self) -> Option<u64> {
        let mut state = self.lock();
        if state.threads.current().is_some() {
            return None;
        }
        let now_ns = state.now_ns;
        let id = std::thread::current().id();
        Some(state.threads.add(Some(id), now_ns))
    }

    fn takes_part(&self) -> bool {
        self.lock().threads.current().is_some()
    }

    fn announce(&self) -> u64 {
        let mut state = self.lock();
        let clock_ns = state.clock_ns();
        state.threads.add(None, clock_ns)
    }

    fn start(&self, thread: u64) {
        let mut state = self.lock();
        let mut list = state.threads.list.iter_mut();
        if let Some(thread) = list.find(|it| it.number == thread) {
            thread.id = Some(std::thread::current().id());
            thread.signs_of_life += 1;
        }
    }

    fn leave(&self, thread: u64) {
        let mut state = self.lock();
        let list = &mut state.threads.list;
        if let Some(at) = list.iter().position(|it| it.number == thread) {
            let thread = list.remove(at);
            if !thread.is_joined {
                state.now_ns = state.now_ns.max(thread.clock_ns);
            }
        }
        self.wake_sleepers(&state);
    }

    fn reach(&self) {
        let mut state = self.lock();
        if !state.threads.current().is_some_and(|it| it.counts) {
            return;
        }
        // A query looks at the devices at its end.
        let query_ns = state.config.profile.calls.query_ns;
        let seen_ns = state.clock_ns().saturating_add(query_ns);
        let Some(thread) = state.threads.current_mut() else {
            return;
        };
        // Others that wait in here, too, do not wait for this thread if it comes later.
        thread.reaching_ns = Some(seen_ns);
        let own = thread.next_call();
        self.wake_sleepers(&state);
        let mut patience = Patience::default();
        let is_first = |other: &mut HostThread| other.next_call() < own;
        while state.threads.slowest_other().is_some_and(is_first) {
            state = self.await_slowest(state, &mut patience);
        }
        if let Some(thread) = state.threads.current_mut() {
            thread.reaching_ns = None;
        }
    }

    fn set_away(&self, away: bool) {
        let mut state = self.lock();
        let now_ns = state.now_ns;
        if let Some(thread) = state.threads.current_mut() {
            match away {
                true => thread.activity = Activity::Away,
                false => thread.resume(now_ns),
            }
        }
        self.wake_sleepers(&state);
    }

    fn signal(&self) -> u64 {
        let threads = &mut self.lock().threads;
        threads.last_number += 1;
        threads.signals.insert(threads.last_number, VecDeque::new());
        threads.last_number
    }

    fn post(&self, signal: u64) {
        let mut state = self.lock();
        let clock_ns = state.clock_ns();
        let threads = &mut state.threads;
        let mut list = threads.list.iter_mut();
        let waits =
            |it: &&mut HostThread| matches!(it.activity, Activity::Blocked(on) if on == signal);
        if let Some(thread) = list.find(waits) {
            thread.resume(clock_ns);
        } else if let Some(posted) = threads.signals.get_mut(&signal) {
            posted.push_back(clock_ns);
        }
        self.wake_sleepers(&state);
    }

    fn take(&self, signal: u64) {
        let mut state = self.lock();
        let threads = &mut state.threads;
        let posted = threads.signals.get_mut(&signal);
        let posted_ns = posted.and_then(VecDeque::pop_front);
        let Some(thread) = threads.current_mut() else {
            return;
        };
        match posted_ns {
            Some(posted_ns) => return thread.resume(posted_ns),
            None => thread.activity = Activity::Blocked(signal),
        }
        self.wake_sleepers(&state);
        let is_blocked = |it: &HostThread| matches!(it.activity, Activity::Blocked(_));
        while state.threads.current().is_some_and(is_blocked) {
            (state, _) = self.sleep(state, Duration::MAX);
        }
    }

    fn forget(&self, signal: u64) {
        self.lock().threads.signals.remove(&signal);
    }
}

//! Tests of the suite: it makes every call of the trait, and detects when one is broken.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pinlane_conformance::{Case, Verdict, run, run_case, suite};
use pinlane_driver::{
    Call, DeviceInfo, Driver, Error, ErrorKind, Hook, Intercepted, Place, Platform, Result,
    StreamHandle, StreamWork,
};
use pinlane_model::Profile;
use pinlane_sim::Sim;

/// Defines `CALLS`.
macro_rules! list_calls {
    ($($call:ident: $safety:ident $name:ident $args:tt -> $result:ty $([$($more:tt)*])?;)*) => {
        /// Every call of the trait: whether it is `safe` or `unsafe`, and what it takes.
        const CALLS: &[(Call, &str, &str)] =
            &[$((Call::$call, stringify!($safety), stringify!($args))),*];
    };
}

pinlane_driver::driver_calls!(list_calls);

/// A simulated machine that records calls, and can make one of them always fail.
struct Watched {
    sim: Sim,
    seen: Arc<Mutex<Vec<Call>>>,
    broken: Option<Call>,
}

impl Watched {
    fn new(broken: Option<Call>) -> Self {
        let profile = Profile::builtin("null").expect("a built-in profile");
        Self {
            sim: Sim::new(profile),
            seen: Arc::default(),
            broken,
        }
    }

    fn run(&self, case: &Case) -> Verdict {
        run_case(case, self, 0).verdict
    }
}

impl Platform for Watched {
    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        self.sim.devices()
    }

    fn open(&self, ordinal: u32) -> Result<Arc<dyn Driver>> {
        let watcher = Watcher {
            seen: Arc::clone(&self.seen),
            broken: self.broken,
        };
        Ok(Arc::new(Intercepted::new(self.sim.open(ordinal)?, watcher)))
    }
}

struct Watcher {
    seen: Arc<Mutex<Vec<Call>>>,
    broken: Option<Call>,
}

// SAFETY: its only error is not fatal.
unsafe impl Hook for Watcher {
    fn before(&self, call: Call) -> Result<()> {
        self.seen.lock().expect("not poisoned").push(call);
        if self.broken == Some(call) {
            return Err(Error::new(ErrorKind::Other { code: 999 }, "broken"));
        }
        Ok(())
    }
}

/// The calls that each case makes.
fn calls_by_case() -> Vec<(Case, Vec<Call>)> {
    suite()
        .into_iter()
        .map(|case| {
            let watched = Watched::new(None);
            watched.run(&case);
            let seen = watched.seen.lock().expect("not poisoned").clone();
            (case, seen)
        })
        .collect()
}

#[test]
fn every_call_is_made_and_missed_when_it_is_broken() {
    let cases = calls_by_case();
    for (call, ..) in CALLS {
        let mut users = cases.iter().filter(|(_, calls)| calls.contains(call));
        let noticed = users
            .any(|(case, _)| matches!(Watched::new(Some(*call)).run(case), Verdict::Failed(_)));
        assert!(noticed, "no case notices that {call:?} is broken");
    }
}

/// On libcuda, a handle of another driver or of something destroyed is a wild pointer.
#[test]
fn every_call_that_takes_a_handle_is_unsafe() {
    let takes_handle = |args: &str| args.contains("Handle");
    assert!(CALLS.iter().filter(|(.., args)| takes_handle(args)).count() > 20);
    for (call, safety, args) in CALLS {
        assert!(*safety == "unsafe" || !takes_handle(args), "{call:?}{args}");
    }
}

/// A simulated machine whose first copy to the host leaves zeros there.
struct LosesFirstCopy(Sim);

impl Platform for LosesFirstCopy {
    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        self.0.devices()
    }

    fn open(&self, ordinal: u32) -> Result<Arc<dyn Driver>> {
        let hook = FirstCopy(AtomicBool::new(true));
        Ok(Arc::new(Intercepted::new(self.0.open(ordinal)?, hook)))
    }
}

/// Whether the first copy to the host is still to come.
struct FirstCopy(AtomicBool);

// SAFETY: it makes no errors.
unsafe impl Hook for FirstCopy {
    fn before(&self, _: Call) -> Result<()> {
        Ok(())
    }

    unsafe fn after_work(&self, driver: &dyn Driver, stream: StreamHandle, work: StreamWork<'_>) {
        let StreamWork::Copies([copy]) = work else {
            return;
        };
        if let Place::Host(target) = copy.target
            && self.0.swap(false, Ordering::Relaxed)
        {
            // SAFETY: the caller's.
            unsafe { driver.stream_synchronize(stream) }.expect("a working stream");
            // SAFETY: the copy that was to fill these bytes is done, and its caller waits for it.
            unsafe { target.write_bytes(0, copy.bytes) };
        }
    }
}

#[test]
fn a_first_round_that_leaves_zeros_is_noticed() {
    for name in [
        "memset/in-stream-order",
        "stream-memory/free-comes-after-earlier-work",
        "stream-memory/reused-across-streams",
    ] {
        let case = suite().into_iter().find(|case| case.name == name);
        let sim = Sim::new(Profile::builtin("null").expect("a built-in profile"));
        let result = run_case(&case.expect(name), &LosesFirstCopy(sim), 0);
        assert!(matches!(result.verdict, Verdict::Failed(_)), "{name}");
    }
}

#[test]
fn names_are_unique_and_well_formed() {
    let mut names: Vec<_> = suite().iter().map(|case| case.name).collect();
    for name in &names {
        let (topic, claim) = name.split_once('/').expect("topic/claim");
        let plain = |text: &str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        assert!(plain(topic) && plain(claim), "{name}");
    }
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn filter_chooses_by_name_and_results_are_counted() {
    let sim = Sim::new(Profile::builtin("null").expect("a built-in profile"));
    let mut names = Vec::new();
    let summary = run(&sim, 0, Some("memset/"), &mut |result| {
        names.push(result.name);
        ControlFlow::Continue(())
    });
    assert!(names.iter().all(|name| name.starts_with("memset/")));
    assert_eq!(summary.passed, names.len());
    assert_eq!((summary.failed, summary.skipped), (0, 0));
}

#[test]
fn a_panic_fails_its_case_only() {
    let case = Case {
        name: "test/panics",
        run: |_| panic!("on purpose"),
        misuse: false,
    };
    let verdict = Watched::new(None).run(&case);
    assert_eq!(verdict, Verdict::Failed("panicked: on purpose".into()));
}

#[test]
fn the_caller_can_stop_the_run() {
    let sim = Sim::new(Profile::builtin("null").expect("a built-in profile"));
    let mut calls = 0;
    let summary = run(&sim, 0, Some("memset/"), &mut |_| {
        calls += 1;
        ControlFlow::Break(())
    });
    assert_eq!((calls, summary.passed), (1, 1));
}

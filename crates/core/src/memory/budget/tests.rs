//! The budget's arithmetic, with fake sources.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::limit_sources::Sources;
use super::*;

/// Makes a broken test fail instead of hang.
const PATIENCE: Duration = Duration::from_secs(30);

#[cfg_attr(miri, allow(dead_code))] // files
/// A temporary directory with files as a system would present them.
pub(super) struct Tree(PathBuf);

impl Tree {
    pub(super) fn new(name: &str) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("pinlane-{name}-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    pub(super) fn root(&self) -> &Path {
        &self.0
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().expect("below the root")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A machine with this much available memory and these variables.
struct FakeMachine {
    available: Arc<AtomicU64>,
    variables: Vec<(&'static str, &'static str)>,
    clock: Arc<FakeClock>,
}

/// Counts how often somebody looked at the machine's memory.
struct FakeClock {
    start: Instant,
    passed_ms: AtomicU64,
    looks: AtomicU64,
}

impl FakeClock {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            start: Instant::now(),
            passed_ms: AtomicU64::new(0),
            looks: AtomicU64::new(0),
        })
    }

    fn looks(&self) -> u64 {
        self.looks.swap(0, Ordering::Relaxed)
    }
}

impl Sources for FakeMachine {
    fn variable(&self, name: &str) -> Option<String> {
        let found = self.variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    }

    fn available_bytes(&self) -> Option<u64> {
        self.clock.looks.fetch_add(1, Ordering::Relaxed);
        Some(self.available.load(Ordering::Relaxed))
    }

    fn now(&self) -> Instant {
        let passed = self.clock.passed_ms.load(Ordering::Relaxed);
        self.clock.start + Duration::from_millis(passed)
    }
}

fn fake(bytes: u64, variables: &[(&'static str, &'static str)]) -> (Budget, Arc<AtomicU64>) {
    let available = Arc::new(AtomicU64::new(bytes));
    let sources = FakeMachine {
        available: Arc::clone(&available),
        variables: variables.to_vec(),
        clock: FakeClock::new(),
    };
    (Budget::new(Rule::from_sources(sources)), available)
}

/// The error of a budget with a fixed limit.
fn over(requested_bytes: u64, in_use_bytes: u64, limit_bytes: u64) -> Error {
    Error::OverBudget {
        requested_bytes,
        in_use_bytes,
        limit_bytes,
        remedy: Rule::Fixed(limit_bytes).remedy(),
    }
}

/// The requested, used and allowed bytes of a refusal.
fn figures(error: &Error) -> (u64, u64, u64) {
    let Error::OverBudget {
        requested_bytes,
        in_use_bytes,
        limit_bytes,
        ..
    } = *error
    else {
        panic!("{error}");
    };
    (requested_bytes, in_use_bytes, limit_bytes)
}

#[test]
fn what_is_reserved_counts_until_it_is_given_back() {
    let budget = Budget::with_limit(100);
    let first = budget.reserve(60).unwrap();
    assert_eq!((first.bytes(), budget.in_use_bytes()), (60, 60));
    assert_eq!(budget.reserve(41).unwrap_err(), over(41, 60, 100));
    let second = budget.clone().reserve(40).unwrap();
    assert_eq!(budget.in_use_bytes(), 100);
    drop(first);
    assert_eq!(budget.in_use_bytes(), 40);
    second.keep();
    assert_eq!(budget.in_use_bytes(), 40, "kept for good");
}

#[test]
fn asking_for_everything_overflows_nothing() {
    let budget = Budget::with_limit(100);
    let _some = budget.reserve(1).unwrap();
    let error = budget.reserve(u64::MAX).unwrap_err();
    assert_eq!(error, over(u64::MAX, 1, 100));
    let unlimited = Budget::with_limit(u64::MAX);
    let _some = unlimited.reserve(1).unwrap();
    assert!(unlimited.reserve(u64::MAX).is_err());
}

#[test]
fn by_default_half_is_shared_among_the_processes() {
    let (budget, _) = fake(1000, &[]);
    assert_eq!(budget.limit_bytes(), Ok(500));
    let (budget, _) = fake(1000, &[("LOCAL_WORLD_SIZE", "4")]);
    assert_eq!(budget.limit_bytes(), Ok(125));
    assert_eq!(figures(&budget.reserve(126).unwrap_err()), (126, 0, 125));
}

#[test]
fn what_others_took_meanwhile_counts() {
    let (budget, available) = fake(1000, &[]);
    let _first = budget.reserve(100).unwrap();
    available.store(300, Ordering::Relaxed);
    assert_eq!(figures(&budget.reserve(151).unwrap_err()), (151, 100, 250));
    let _second = budget.reserve(150).unwrap();
    assert_eq!(budget.limit_bytes(), Ok(500), "found once");
}

#[test]
fn small_buffers_share_a_look_at_the_machine() {
    const PAGE: u64 = 4096;
    let clock = FakeClock::new();
    let available = Arc::new(AtomicU64::new(32 * 16 * 2 * PAGE));
    let budget = Budget::new(Rule::from_sources(FakeMachine {
        available: Arc::clone(&available),
        variables: Vec::new(),
        clock: Arc::clone(&clock),
    }));
    budget.limit_bytes().unwrap();
    assert_eq!(clock.looks(), 1, "for the limit");
    // A sixteenth of the half that may be taken.
    let first: Vec<_> = (0..33).map(|_| budget.reserve(PAGE).unwrap()).collect();
    assert_eq!(clock.looks(), 1, "the first, and 32 after it");
    let _next = budget.reserve(PAGE).unwrap();
    assert_eq!(clock.looks(), 1, "no more than that");
    drop(first);
    let _large = budget.reserve(33 * PAGE).unwrap();
    assert_eq!(clock.looks(), 1, "larger than what is left of it");

    clock.passed_ms.store(99, Ordering::Relaxed);
    let _in_time = budget.reserve(PAGE).unwrap();
    assert_eq!(clock.looks(), 0);
    clock.passed_ms.store(100, Ordering::Relaxed);
    available.store(PAGE, Ordering::Relaxed);
    assert!(budget.reserve(PAGE).is_err(), "more than half is not seen");
    assert!(budget.reserve(1).is_ok());
    assert!(clock.looks() > 0);
}

/// A machine whose available memory is what the budget does not use of its total.
struct SharedMachine {
    total: Arc<AtomicU64>,
    budget: Arc<std::sync::OnceLock<Budget>>,
}

impl Sources for SharedMachine {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn available_bytes(&self) -> Option<u64> {
        let used_bytes = self.budget.get().map_or(0, Budget::in_use_bytes);
        Some(
            self.total
                .load(Ordering::Relaxed)
                .saturating_sub(used_bytes),
        )
    }

    fn now(&self) -> Instant {
        Instant::now()
    }
}

#[test]
fn where_the_machine_has_less_than_before_idle_memory_makes_room() {
    const KIB: usize = 1024;
    let total = Arc::new(AtomicU64::new(1 << 20));
    let known = Arc::new(std::sync::OnceLock::new());
    let budget = Budget::new(Rule::from_sources(SharedMachine {
        total: Arc::clone(&total),
        budget: Arc::clone(&known),
    }));
    assert!(known.set(budget.clone()).is_ok());
    let sim = pinlane_sim::Sim::new(pinlane_model::Profile::builtin("pcie3-x16").unwrap());
    let device = crate::Device::with_budget(sim.driver(), &budget);
    let held = device.pinned::<u8>(64 * KIB).unwrap();
    drop([(); 4].map(|()| device.pinned::<u8>(64 * KIB).unwrap()));
    assert_eq!(budget.idle_bytes(), 256 * KIB as u64);

    // Others took all but 16 KiB.
    total.store(336 * KIB as u64, Ordering::Relaxed);
    let reused = device.pinned::<u8>(64 * KIB).unwrap();
    assert_eq!(
        budget.in_use_bytes(),
        320 * KIB as u64,
        "nothing was locked"
    );
    drop(reused);
    // 16 KiB and what is freed must be twice as much.
    let other_size = device.pinned::<u8>(100 * KIB).unwrap();
    assert_eq!(budget.idle_bytes(), 64 * KIB as u64, "no more than needed");
    drop(other_size);
    // Half of what there is beside the buffer that is held.
    let most = (336 - 64) / 2 * KIB;
    let error = device.pinned::<u8>(most + 1).map(drop).unwrap_err();
    assert!(matches!(error, Error::OverBudget { .. }), "{error}");
    drop(device.pinned::<u8>(most).unwrap());
    drop((held, device));
    assert_eq!(budget.in_use_bytes(), 0);
}

#[test]
fn a_chosen_limit_is_taken_as_it_is() {
    let variables = [("PINLANE_PINNED_LIMIT", "2K"), ("LOCAL_WORLD_SIZE", "4")];
    let (budget, available) = fake(1000, &variables);
    available.store(0, Ordering::Relaxed);
    assert_eq!(budget.limit_bytes(), Ok(2048));
    assert_eq!(budget.reserve(2048).unwrap().bytes(), 2048);
    let (budget, _) = fake(1000, &[("PINLANE_PINNED_LIMIT", "none")]);
    assert_eq!(budget.reserve(1 << 60).unwrap().bytes(), 1 << 60);
}

#[test]
fn a_limit_that_cannot_be_read_is_told_when_something_is_pinned() {
    let (budget, _) = fake(1000, &[("PINLANE_PINNED_LIMIT", "plenty")]);
    for result in [budget.reserve(1).map(drop), budget.limit_bytes().map(drop)] {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("PINLANE_PINNED_LIMIT"), "{error}");
    }
    let waited = budget.reserve_within(1, Duration::MAX);
    assert!(
        matches!(waited, Err(Error::BadSetting { .. })),
        "{waited:?}"
    );
}

#[test]
fn a_wait_ends_when_others_give_back() {
    let budget = Budget::with_limit(100);
    let first = budget.reserve(60).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| budget.reserve_within(50, PATIENCE).map(|r| r.bytes()));
        drop(first);
        assert_eq!(waiting.join().unwrap(), Ok(50));
    });
    assert_eq!(budget.in_use_bytes(), 0);
}

#[test]
fn a_wait_ends_with_its_time_and_at_once_where_it_is_hopeless() {
    let budget = Budget::with_limit(100);
    let _first = budget.reserve(60).unwrap();
    let waited = budget.reserve_within(50, Duration::from_millis(3));
    assert_eq!(waited.unwrap_err(), over(50, 60, 100));
    let hopeless = budget.reserve_within(101, Duration::MAX);
    assert_eq!(hopeless.unwrap_err(), over(101, 60, 100));
}

#[test]
fn the_error_says_all_and_the_remedy() {
    let text = over(3 << 30, 1500, 512).to_string();
    for part in ["3.0 GiB", "1.5 KiB", "512 bytes"] {
        assert!(text.contains(part), "{text}");
    }
    let refused = |budget: &Budget| budget.reserve(1 << 40).unwrap_err().to_string();
    let (process, _) = fake(1000, &[]);
    let text = refused(&process);
    assert!(text.contains("PINLANE_PINNED_LIMIT"), "{text}");
    // The variable has no effect on a budget of one's own.
    let text = refused(&Budget::with_limit(100));
    assert!(text.contains("Budget::with_limit"), "{text}");
    assert!(!text.contains("PINLANE"), "{text}");
}

#[test]
fn all_devices_share_the_budget_of_the_process() {
    let reserved = Budget::process().reserve(4096).unwrap();
    assert!(Budget::process().in_use_bytes() >= 4096);
    drop(reserved);
}

//! The budget's arithmetic, with fake sources.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::rule::Sources;
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
}

impl Sources for FakeMachine {
    fn variable(&self, name: &str) -> Option<String> {
        let found = self.variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    }

    fn available_bytes(&self) -> Option<u64> {
        Some(self.available.load(Ordering::Relaxed))
    }
}

fn fake(bytes: u64, variables: &[(&'static str, &'static str)]) -> (Budget, Arc<AtomicU64>) {
    let available = Arc::new(AtomicU64::new(bytes));
    let sources = FakeMachine {
        available: Arc::clone(&available),
        variables: variables.to_vec(),
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

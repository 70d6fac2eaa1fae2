//! Start and end of the process, its forked children, and what it counts.

use std::env;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use pinlane_boost_files::{Counter, CounterFile, Direction};

use crate::settings::Settings;
use crate::trace;

/// Whether this process was forked from the one that loaded the library. CUDA does not work there unless it was
/// first used there, and the express lane's threads do not exist.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

/// Called by the loader.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    counters();
    if !settings().children {
        forget_preload();
    }
    trace::start();
    // SAFETY: the handlers only use atomics, and print at the end.
    unsafe {
        libc::pthread_atfork(None, None, Some(note_child));
        if settings().stats {
            libc::atexit(print_stats);
        }
    }
}

extern "C" fn note_child() {
    IS_FORKED.store(true, Ordering::Relaxed);
    trace::note_child();
}

/// Whether this is a forked child. It must take no lock of ours: another thread may have held it.
pub(crate) fn is_forked() -> bool {
    IS_FORKED.load(Ordering::Relaxed)
}

/// Whether copies may go over the express lane here.
pub(crate) fn is_on() -> bool {
    settings().boost && !IS_FORKED.load(Ordering::Relaxed)
}

pub(crate) fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(Settings::from_environment)
}

/// The counters of this process.
pub(crate) fn counters() -> &'static CounterFile {
    static COUNTERS: OnceLock<CounterFile> = OnceLock::new();
    COUNTERS.get_or_init(|| {
        let folder = settings().folder.as_deref().filter(|_| may_write_files());
        let file = folder.and_then(|folder| CounterFile::create(folder).ok());
        // Without a file nobody reads them, but the program runs on.
        file.unwrap_or_else(|| CounterFile::in_memory().expect("a page of memory"))
    })
}

/// Whether files may have the size of the counters. A write beyond the limit would be a signal.
fn may_write_files() -> bool {
    let mut limit = MaybeUninit::<libc::rlimit>::zeroed();
    // SAFETY: `limit` outlives the call.
    let code = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, limit.as_mut_ptr()) };
    // SAFETY: all-zero is a valid limit, whether or not the call filled it in.
    code == 0 && unsafe { limit.assume_init() }.rlim_cur >= CounterFile::BYTES as u64
}

/// Keeps programs that this one starts from loading the library.
fn forget_preload() {
    const PRELOAD: &str = "LD_PRELOAD";
    let Some(list) = env::var_os(PRELOAD) else {
        return;
    };
    let list = list.to_string_lossy();
    let is_other = |name: &&str| !name.is_empty() && !name.contains("libpinlane_boost");
    let others: Vec<&str> = list.split([':', ' ']).filter(is_other).collect();
    // SAFETY: the loader calls this before the program has started threads.
    unsafe {
        match others.is_empty() {
            true => env::remove_var(PRELOAD),
            false => env::set_var(PRELOAD, others.join(":")),
        }
    }
}

/// One line for each direction that was boosted, for users who preload the library by hand.
extern "C" fn print_stats() {
    if IS_FORKED.load(Ordering::Relaxed) {
        return;
    }
    let values = counters().values();
    let seen = values.copies_seen();
    if seen == 0 {
        return;
    }
    for (direction, name) in Direction::ALL.into_iter().zip(["to device", "to host"]) {
        let copies = values.boosted(Counter::BoostedCopies, direction);
        let bytes = values.boosted(Counter::BoostedBytes, direction);
        let ns = values.boosted(Counter::BoostedNs, direction);
        if copies > 0 {
            let rate = bytes as f64 / ns.max(1) as f64;
            // Where nothing can be written there is nobody to tell.
            let _ = writeln!(
                io::stderr(),
                "pinlane boost: {copies} of {seen} copies, {bytes} bytes {name} over the express lane, {rate:.1} GB/s"
            );
        }
    }
}

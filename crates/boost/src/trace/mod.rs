//! Records what the program asks of the driver: copies, pinned memory and waits, each with its time and its place in the
//! program.
//!
//! ```text
//!   wrapped call ── record ──┬── calls.rs           which calls, and what their arguments mean
//!                            ├── host_memory.rs     the kind of host memory at an address
//!                            ├── call_site.rs       who called: native_stack.rs, python_stack.rs
//!                            └── pinlane_boost_files::trace::TraceFile
//! ```
//!
//! Only if the environment names a folder; otherwise a call costs one relaxed load more. The file is made by the first
//! call, so processes that never use CUDA leave none.

mod call_site;
#[macro_use]
mod calls;
mod copy_structs;
mod host_memory;
mod native_stack;
mod python_stack;
mod recorded_call;

use std::cell::Cell;
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use pinlane_boost_files::trace::{Event, Operation, Route, SiteKey, TraceFile};

use crate::process;
use call_site::CallSite;
pub(crate) use calls::described;
pub(crate) use recorded_call::RecordedCall;

static IS_ON: AtomicBool = AtomicBool::new(false);

/// Whether a call was recorded, or is being recorded for the first time.
static HAS_RECORDED: AtomicBool = AtomicBool::new(false);

/// `None` inside if it could not be made.
static FILE: OnceLock<Option<TraceFile>> = OnceLock::new();

/// Longest command line that is kept.
const COMMAND_BYTES: usize = 500;

/// Called when the process starts.
pub(crate) fn start() {
    if process::settings().trace_folder.is_none() {
        return;
    }
    IS_ON.store(true, Ordering::Relaxed);
    // SAFETY: the handler writes one word.
    unsafe { libc::atexit(note_end) };
}

/// Called in a forked child. It may use CUDA if its parent had not, and then has a file of its own. Otherwise another
/// thread may have held a lock of ours.
pub(crate) fn note_child() {
    if HAS_RECORDED.load(Ordering::Relaxed) {
        IS_ON.store(false, Ordering::Relaxed);
    }
}

extern "C" fn note_end() {
    // Not in a forked child, whose parent goes on.
    if let (true, Some(Some(file))) = (IS_ON.load(Ordering::Relaxed), FILE.get()) {
        file.set_end(now_ns());
    }
}

/// Makes a call and records it.
pub(crate) fn record(
    describe: impl FnOnce() -> Option<RecordedCall>,
    call: impl FnOnce() -> u32,
) -> u32 {
    // A call inside of the recording, from a signal handler for example, would wait for locks of its own thread.
    if !IS_ON.load(Ordering::Relaxed) || IS_RECORDING.get() {
        return call();
    }
    HAS_RECORDED.store(true, Ordering::Relaxed);
    // A panic must not reach the program. The call is made either way.
    let described = recording(|| {
        let described = describe().map(RecordedCall::with_memory_kind)?;
        // Before the call: an interpreter that ends meanwhile frees the thread's frames.
        Some((described, CallSite::find()))
    });
    let start_ns = now_ns();
    let result = call();
    let ns = now_ns().saturating_sub(start_ns);
    if let Some((described, site)) = described {
        recording(|| {
            finish(described, site, start_ns, ns, result);
            Some(())
        });
    }
    result
}

/// Runs a part of the recording, during which calls of this thread are not recorded.
fn recording<T>(work: impl FnOnce() -> Option<T>) -> Option<T> {
    IS_RECORDING.set(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    IS_RECORDING.set(false);
    result.ok().flatten()
}

fn finish(call: RecordedCall, site: Option<CallSite>, start_ns: u64, ns: u64, result: u32) {
    /// Not an error: what was asked about is not done yet.
    const NOT_READY: u32 = 600;
    let result = if result == NOT_READY { 0 } else { result };
    let Some(file) = file(start_ns) else {
        IS_ON.store(false, Ordering::Relaxed);
        return;
    };
    let call = host_memory::update(call, result);
    // Programs poll: their queries would fill the file.
    let is_query = matches!(
        call.operation,
        Operation::QueryEvent | Operation::QueryStream
    );
    let key = SiteKey {
        operation: call.operation,
        route: call.route,
        memory: call.memory,
        is_async: call.is_async,
    };
    let event = Event {
        start_ns,
        ns,
        bytes: call.bytes,
        stream: call.stream,
        host: call.host,
        other: call.other,
        site: call_site::index(file, site, key),
        thread: thread_id(),
        operation: call.operation,
        route: call.route,
        memory: call.memory,
        is_async: call.is_async,
        result: u16::try_from(result).unwrap_or(u16::MAX),
        launches: match is_query {
            true => 0,
            false => LAUNCHES.replace(0),
        },
    };
    file.add_event(event, !is_query);
}

fn file(start_ns: u64) -> Option<&'static TraceFile> {
    let make = || {
        let folder = process::settings().trace_folder.as_deref()?;
        let words: Vec<String> = env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let command: String = words.join(" ").chars().take(COMMAND_BYTES).collect();
        let file = TraceFile::create(folder, start_ns, &command).ok()?;
        file.set_python(python_stack::lines());
        Some(file)
    };
    FILE.get_or_init(make).as_ref()
}

/// The system's monotonic clock.
fn now_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

thread_local! {
    static ID: Cell<u32> = const { Cell::new(0) };
    static IS_RECORDING: Cell<bool> = const { Cell::new(false) };
    /// Launches since the thread's last event.
    static LAUNCHES: Cell<u16> = const { Cell::new(0) };
}

/// A launch. It is only counted: what it runs is not a copy, but a wait behind it is not one for a copy alone.
pub(crate) fn count_launch(launch: impl FnOnce() -> u32) -> u32 {
    if IS_ON.load(Ordering::Relaxed) {
        LAUNCHES.set(LAUNCHES.get().saturating_add(1));
    }
    launch()
}

fn thread_id() -> u32 {
    if ID.get() == 0 {
        // SAFETY: only returns a number.
        ID.set(unsafe { libc::gettid() } as u32);
    }
    ID.get()
}

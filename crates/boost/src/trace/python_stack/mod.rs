//! The Python functions that led to a call.
//!
//! The calling thread is about to make the call, so nothing changes its frames, whether it holds the interpreter's lock or
//! not; only an interpreter that ends frees those of other threads.
//! Only addresses are read to recognise a place. Its names are found once.
//!
//! ```text
//!   traceback_dump   names for 3.11 and 3.12: the interpreter writes them, as it does when it crashes
//!   debug_offsets    frames and names for 3.13, by the table that the interpreter has for debuggers
//! ```

mod debug_offsets;
mod traceback_dump;

use std::ffi::{CStr, c_int, c_ulong, c_void};
use std::ptr;
use std::sync::OnceLock;

use pinlane_boost_files::trace::{Frame, PythonLines};

use crate::interpose::real_dlsym;
use debug_offsets::DebugOffsets;
use traceback_dump::TracebackDump;

/// Frames that tell call sites apart, and those that are kept.
const DEPTH: usize = 16;

/// Where things are in the interpreter's structures, in bytes.
#[derive(Clone, Copy)]
struct Layout {
    /// Of the thread state, to what `current_frame` is in; `None` if that is the thread state itself.
    cframe: Option<usize>,
    current_frame: usize,
    /// Of a frame.
    code: usize,
    previous: usize,
    instruction: usize,
}

const PYTHON_3_11: Layout = Layout {
    cframe: Some(56),
    current_frame: 8,
    code: 32,
    previous: 48,
    instruction: 56,
};

const PYTHON_3_12: Layout = Layout {
    cframe: Some(56),
    current_frame: 0,
    code: 0,
    previous: 8,
    instruction: 56,
};

/// Code and instruction of each frame, innermost first.
pub(super) type PythonKey = [(usize, usize); DEPTH];

type ThisThread = unsafe extern "C" fn() -> *const u8;

/// An interpreter whose frames can be read.
struct Interpreter {
    this_thread: ThisThread,
    is_ending: IsEnding,
    layout: Layout,
    names: Names,
}

type IsEnding = unsafe extern "C" fn() -> c_int;

/// How the names of a frame are found.
enum Names {
    Dump(TracebackDump),
    Offsets(Box<DebugOffsets>),
}

fn symbol(name: &CStr) -> Option<ptr::NonNull<c_void>> {
    let dlsym = real_dlsym();
    // SAFETY: the name ends with a zero. The program gets none of our errors.
    let found = unsafe {
        let found = dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        libc::dlerror();
        found
    };
    ptr::NonNull::new(found)
}

/// Whether lines are known here.
pub(super) fn lines() -> PythonLines {
    match (symbol(c"Py_IsInitialized"), interpreter()) {
        (None, _) => PythonLines::NoPython,
        (Some(_), Some(_)) => PythonLines::Known,
        (Some(_), None) => PythonLines::UnknownVersion,
    }
}

fn interpreter() -> Option<&'static Interpreter> {
    static INTERPRETER: OnceLock<Option<Interpreter>> = OnceLock::new();
    INTERPRETER.get_or_init(Interpreter::find).as_ref()
}

impl Interpreter {
    fn find() -> Option<Self> {
        // SAFETY: a constant of the interpreter, of this type.
        let version = unsafe { symbol(c"Py_Version")?.cast::<c_ulong>().read() };
        let (layout, names) = match version >> 16 {
            0x030B => (PYTHON_3_11, Names::Dump(TracebackDump::find()?)),
            0x030C => (PYTHON_3_12, Names::Dump(TracebackDump::find()?)),
            0x030D => {
                let offsets = DebugOffsets::find(version)?;
                (offsets.layout(), Names::Offsets(Box::new(offsets)))
            }
            _ => return None,
        };
        let this_thread = symbol(c"PyGILState_GetThisThreadState")?;
        // Public since 3.13.
        let is_ending = symbol(c"Py_IsFinalizing").or_else(|| symbol(c"_Py_IsFinalizing"))?;
        // SAFETY: a function of the interpreter, of this type.
        let is_ending = unsafe { std::mem::transmute::<ptr::NonNull<c_void>, IsEnding>(is_ending) };
        // SAFETY: a function of the interpreter, of this type.
        let this_thread =
            unsafe { std::mem::transmute::<ptr::NonNull<c_void>, ThisThread>(this_thread) };
        Some(Self {
            this_thread,
            is_ending,
            layout,
            names,
        })
    }

    /// The state of the calling thread; null if it has none, or the interpreter ends.
    fn thread(&self) -> *const u8 {
        // SAFETY: functions of the interpreter that need no lock.
        unsafe {
            match (self.is_ending)() {
                0 => (self.this_thread)(),
                _ => ptr::null(),
            }
        }
    }

    /// The thread's frames, innermost first; none unless a Python function called.
    fn walk(&self) -> impl Iterator<Item = *const u8> {
        let layout = self.layout;
        // SAFETY: needs no lock. The thread's own state and frames live until the interpreter ends; null ends the list.
        let first = unsafe {
            let thread = self.thread();
            let holder = match layout.cframe {
                Some(cframe) => follow(thread, cframe),
                None => Some(thread),
            };
            holder.and_then(|holder| follow(holder, layout.current_frame))
        };
        // SAFETY: as above.
        std::iter::successors(first, move |frame| unsafe {
            follow(*frame, layout.previous)
        })
    }
}

/// What tells the caller's place apart; `None` unless a Python function called.
pub(super) fn key() -> Option<PythonKey> {
    let interpreter = interpreter()?;
    let Layout {
        code, instruction, ..
    } = interpreter.layout;
    let mut key = PythonKey::default();
    for (place, frame) in key.iter_mut().zip(interpreter.walk()) {
        // SAFETY: a frame of this thread.
        let at = |offset| unsafe { follow(frame, offset) }.map_or(0, <*const u8>::addr);
        *place = (at(code), at(instruction));
    }
    (key != PythonKey::default()).then_some(key)
}

/// The names of the caller's functions.
pub(super) fn frames() -> Vec<Frame> {
    let Some(interpreter) = interpreter() else {
        return Vec::new();
    };
    match &interpreter.names {
        // SAFETY: the thread's own state.
        Names::Dump(dump) => unsafe { dump.frames(interpreter.thread()) },
        Names::Offsets(offsets) => {
            // SAFETY: frames of this thread.
            let names = interpreter
                .walk()
                .filter_map(|frame| unsafe { offsets.frame(frame) });
            names.take(DEPTH).collect()
        }
    }
}

/// The pointer at an offset; `None` if either is null.
///
/// # Safety
/// `base` is null, or there is a pointer at the offset.
unsafe fn follow(base: *const u8, offset: usize) -> Option<*const u8> {
    if base.is_null() {
        return None;
    }
    // SAFETY: the caller's.
    let found = unsafe { base.add(offset).cast::<*const u8>().read() };
    (!found.is_null()).then_some(found)
}

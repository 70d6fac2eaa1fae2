//! Names of Python frames, written by the interpreter itself with the function that it uses for crashes. It needs no lock
//! and no memory. 3.13 hides it.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use pinlane_boost_files::trace::Frame;

use super::{DEPTH, symbol};

/// Far more than the frames that are kept.
const TEXT_BYTES: usize = 16 << 10;

pub(super) struct TracebackDump(unsafe extern "C" fn(c_int, *const u8) -> *const c_void);

impl TracebackDump {
    pub(super) fn find() -> Option<Self> {
        type Dump = unsafe extern "C" fn(c_int, *const u8) -> *const c_void;
        let dump = symbol(c"_Py_DumpTraceback")?;
        // SAFETY: a function of the interpreter, of this type.
        Some(Self(unsafe {
            std::mem::transmute::<NonNull<c_void>, Dump>(dump)
        }))
    }

    /// # Safety
    /// `thread` is the state of the calling thread, or null.
    pub(super) unsafe fn frames(&self, thread: *const u8) -> Vec<Frame> {
        // SAFETY: the caller's.
        let text = unsafe { self.text(thread) }.unwrap_or_default();
        text.lines().filter_map(parse).take(DEPTH).collect()
    }

    /// Lets the interpreter write the thread's stack into memory that is like a file.
    ///
    /// # Safety
    /// As for [`frames`](Self::frames).
    unsafe fn text(&self, thread: *const u8) -> Option<String> {
        if thread.is_null() {
            return None;
        }
        // Made for each text: a program may close descriptors that it does not know, and get the number for a file of its
        // own.
        // SAFETY: the name ends with a zero. Programs that are started do not inherit it.
        let file = unsafe { libc::memfd_create(c"pinlane-trace".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return None;
        }
        let mut text = vec![0_u8; TEXT_BYTES];
        // SAFETY: the caller's; the file is ours, and `text` has this size.
        let length = unsafe {
            (self.0)(file, thread);
            let length = libc::pread(file, text.as_mut_ptr().cast(), text.len(), 0);
            libc::close(file);
            length
        };
        text.truncate(usize::try_from(length).ok()?);
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}

/// A line of the interpreter's: `  File "train.py", line 12 in main`.
fn parse(line: &str) -> Option<Frame> {
    let rest = line.trim_start().strip_prefix("File \"")?;
    let (file, rest) = rest.rsplit_once("\", line ")?;
    let (line, function) = rest.split_once(" in ")?;
    Some(Frame::Python {
        file: file.to_owned(),
        line: line.parse().ok()?,
        function: function.to_owned(),
    })
}

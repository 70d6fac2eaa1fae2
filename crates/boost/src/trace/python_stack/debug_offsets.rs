//! Frames of 3.13 by `_Py_DebugOffsets`, the table of offsets that this version has at the start of its state, for debuggers
//! that read it from outside. Here it is read from inside, by the thread that the frames belong to.

use std::ffi::{c_int, c_ulong, c_void};
use std::ptr::NonNull;

use pinlane_boost_files::trace::Frame;

use super::{Layout, follow, symbol};

type LineOf = unsafe extern "C" fn(*const u8, c_int) -> c_int;

/// Words of the table.
#[derive(Clone, Copy)]
enum Word {
    Cookie = 0,
    Version = 1,
    IsFreeThreaded = 2,
    ThreadCurrentFrame = 23,
    FramePrevious = 29,
    FrameExecutable = 30,
    FrameInstruction = 31,
    CodeFileName = 35,
    CodeName = 36,
    CodeStart = 43,
    ObjectType = 45,
    TextState = 68,
    TextLength = 69,
    TextHeaderBytes = 70,
}

const WORDS: usize = 71;

/// Bits of a text's state: its characters follow it, and all of them are ASCII.
const COMPACT_ASCII: u32 = 1 << 5 | 1 << 6;

/// Longer names are damaged, or nobody reads them.
const TEXT_BYTES_MAX: usize = 4096;

pub(super) struct DebugOffsets {
    words: [u64; WORDS],
    code_type: usize,
    /// Only reads the code, so it needs no lock.
    line_of: LineOf,
}

impl DebugOffsets {
    /// `None` unless the table is of this version, and of an interpreter with a lock.
    pub(super) fn find(version: c_ulong) -> Option<Self> {
        let table = symbol(c"_PyRuntime")?;
        // SAFETY: the interpreter's state is larger than its table, which never changes.
        let words = unsafe { table.cast::<[u64; WORDS]>().read() };
        let line_of = symbol(c"PyCode_Addr2Line")?;
        let found = Self {
            words,
            code_type: symbol(c"PyCode_Type")?.addr().get(),
            // SAFETY: a function of the interpreter, of this type.
            line_of: unsafe { std::mem::transmute::<NonNull<c_void>, LineOf>(line_of) },
        };
        let is_known = found.at(Word::Cookie) == usize::from_ne_bytes(*b"xdebugpy")
            && found.at(Word::Version) == version as usize
            && found.at(Word::IsFreeThreaded) == 0;
        is_known.then_some(found)
    }

    fn at(&self, word: Word) -> usize {
        self.words[word as usize] as usize
    }

    pub(super) fn layout(&self) -> Layout {
        Layout {
            cframe: None,
            current_frame: self.at(Word::ThreadCurrentFrame),
            code: self.at(Word::FrameExecutable),
            previous: self.at(Word::FramePrevious),
            instruction: self.at(Word::FrameInstruction),
        }
    }

    /// File, line and function of a frame; `None` for one of the interpreter's own.
    ///
    /// # Safety
    /// `frame` is a frame of the calling thread.
    pub(super) unsafe fn frame(&self, frame: *const u8) -> Option<Frame> {
        // SAFETY: the caller's. A frame keeps its code, and code its names.
        unsafe {
            let code = follow(frame, self.at(Word::FrameExecutable))?;
            let its_type = follow(code, self.at(Word::ObjectType))?;
            if its_type.addr() != self.code_type {
                return None;
            }
            let instruction = follow(frame, self.at(Word::FrameInstruction))?;
            let start = code.addr() + self.at(Word::CodeStart);
            let offset = c_int::try_from(instruction.addr().checked_sub(start)?).ok()?;
            let line = (self.line_of)(code, offset);
            Some(Frame::Python {
                file: self.text(follow(code, self.at(Word::CodeFileName))?),
                line: u32::try_from(line).unwrap_or(0),
                function: self.text(follow(code, self.at(Word::CodeName))?),
            })
        }
    }

    /// A text, unless it has characters that are stored in another way.
    ///
    /// # Safety
    /// `text` is a string of the interpreter.
    unsafe fn text(&self, text: *const u8) -> String {
        // SAFETY: the caller's; a compact text of ASCII characters has them behind its header.
        unsafe {
            let state = text.add(self.at(Word::TextState)).cast::<u32>().read();
            if state & COMPACT_ASCII != COMPACT_ASCII {
                return "(not ASCII)".to_owned();
            }
            let length = text.add(self.at(Word::TextLength)).cast::<usize>().read();
            let start = text.add(self.at(Word::TextHeaderBytes));
            let bytes = std::slice::from_raw_parts(start, length.min(TEXT_BYTES_MAX));
            String::from_utf8_lossy(bytes).into_owned()
        }
    }
}

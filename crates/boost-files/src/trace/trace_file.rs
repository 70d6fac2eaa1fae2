//! Writes what a process does into a file.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapOptions;

use super::event::{EVENT_WORDS, Event, HostMemory, Operation, Route};
use super::layout::{
    ALL_WORDS, EVENTS_AT, FORMAT, Header, MAX_EVENTS, MAX_SITES, SITE_WORDS, SITES_AT, SiteWord,
    TEXT_AT, TEXT_BYTES, pack_place,
};
use super::recording::{Frame, PythonLines};

/// The ending of trace files.
pub(super) const ENDING: &str = "trace";

/// What the calls of a site do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SiteKey {
    /// What they do.
    pub operation: Operation,
    /// Between which memories.
    pub route: Route,
    /// The kind of host memory.
    pub memory: HostMemory,
    /// Whether they are asynchronous.
    pub is_async: bool,
}

impl SiteKey {
    /// Never 0.
    fn to_word(self) -> u64 {
        u64::from_le_bytes([
            self.operation as u8,
            self.route as u8,
            self.memory as u8,
            u8::from(self.is_async),
            1,
            0,
            0,
            0,
        ])
    }

    pub(super) fn from_word(word: u64) -> Option<Self> {
        let [operation, route, memory, is_async, 1, ..] = word.to_le_bytes() else {
            return None;
        };
        Some(Self {
            operation: Operation::from_byte(operation)?,
            route: Route::from_byte(route)?,
            memory: HostMemory::from_byte(memory)?,
            is_async: is_async != 0,
        })
    }
}

/// The trace of this process, in memory that it shares with a file. Any thread may write.
pub struct TraceFile {
    words: &'static [AtomicU64],
}

impl TraceFile {
    /// Makes a file in `folder`.
    ///
    /// # Errors
    /// If it cannot be made, or the disk is full.
    pub fn create(folder: &Path, start_ns: u64, command: &str) -> io::Result<Self> {
        let process = std::process::id();
        let mut number = 0;
        // A process that replaces its program by another one has had a file already.
        let (file, path) = loop {
            let path = folder.join(format!("{process}-{number}.{ENDING}"));
            let mut options = OpenOptions::new();
            match options.read(true).write(true).create_new(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                opened => break (opened?, path),
            }
        };
        if file_size_limit() < (ALL_WORDS * 8) as u64 {
            let _ = fs::remove_file(path);
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        // Not only its length: writing to a page for which the disk has no room would kill the program.
        // SAFETY: the descriptor is open.
        let code = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, (ALL_WORDS * 8) as i64) };
        if code != 0 {
            let _ = fs::remove_file(path);
            return Err(io::Error::from_raw_os_error(code));
        }
        // SAFETY: nobody truncates the file: its folder belongs to the tool that reads it.
        let map = Box::leak(Box::new(unsafe { MmapOptions::new().map_mut(&file) }?));
        // SAFETY: the mapping is page-aligned, has this size and lives for good. Atomics may be shared with the tool.
        let words =
            unsafe { std::slice::from_raw_parts(map.as_mut_ptr().cast::<AtomicU64>(), ALL_WORDS) };
        let trace = Self { words };
        trace.set(Header::Process, u64::from(process));
        trace.set(Header::StartNs, start_ns);
        let command = trace.store_text(command.as_bytes());
        trace.set(Header::Command, command);
        let other = SiteKey {
            operation: Operation::Copy,
            route: Route::Unknown,
            memory: HostMemory::Unknown,
            is_async: false,
        };
        let _ = trace.add_site(other, &[Frame::named("other places")]);
        trace.word(Header::Format).store(FORMAT, Ordering::Release);
        Ok(trace)
    }

    fn word(&self, header: Header) -> &AtomicU64 {
        &self.words[header as usize]
    }

    fn set(&self, header: Header, value: u64) {
        self.word(header).store(value, Ordering::Relaxed);
    }

    /// Notes whether Python lines are known.
    pub fn set_python(&self, python: PythonLines) {
        self.set(Header::Python, python as u64);
    }

    /// Notes the end of the process.
    pub fn set_end(&self, end_ns: u64) {
        self.set(Header::EndNs, end_ns);
    }

    /// Adds a call site and returns its index, or that of all other places once the table is full.
    #[must_use]
    pub fn add_site(&self, key: SiteKey, frames: &[Frame]) -> u32 {
        let index = self.word(Header::Sites).fetch_add(1, Ordering::Relaxed) as usize;
        if index >= MAX_SITES {
            return 0;
        }
        let text: Vec<String> = frames.iter().map(line).collect();
        let place = self.store_text(text.join("\n").as_bytes());
        self.site(index, SiteWord::Text)
            .store(place, Ordering::Relaxed);
        self.site(index, SiteWord::Key)
            .store(key.to_word(), Ordering::Release);
        index as u32
    }

    fn site(&self, index: usize, word: SiteWord) -> &AtomicU64 {
        &self.words[SITES_AT + index * SITE_WORDS + word as usize]
    }

    /// Stores text, if there is room, and returns its place.
    fn store_text(&self, text: &[u8]) -> u64 {
        let words = text.len().div_ceil(8);
        let offset = self
            .word(Header::TextBytes)
            .fetch_add(words as u64 * 8, Ordering::Relaxed) as usize;
        if offset + words * 8 > TEXT_BYTES {
            return 0;
        }
        for (word, bytes) in self.words[TEXT_AT + offset / 8..]
            .iter()
            .zip(text.chunks(8))
        {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(padded), Ordering::Relaxed);
        }
        pack_place(offset, text.len())
    }

    /// Adds a call to the totals of its site, and stores it if `stored` and there is room.
    pub fn add_event(&self, event: Event, stored: bool) {
        let site = event.site as usize;
        let add = |word, amount| {
            self.site(site, word).fetch_add(amount, Ordering::Relaxed);
        };
        add(SiteWord::Calls, 1);
        add(SiteWord::Bytes, event.bytes);
        add(SiteWord::Ns, event.ns);
        self.site(site, SiteWord::LongestNs)
            .fetch_max(event.ns, Ordering::Relaxed);
        self.site(site, SiteWord::LastNs)
            .fetch_max(event.start_ns, Ordering::Relaxed);
        if event.result != 0 {
            add(SiteWord::Failures, 1);
            let code = self.site(site, SiteWord::FailureCode);
            code.store(u64::from(event.result), Ordering::Relaxed);
        }
        if !stored {
            return;
        }
        let index = self.word(Header::Events).fetch_add(1, Ordering::Relaxed) as usize;
        if index >= MAX_EVENTS {
            return;
        }
        let [start, rest @ ..] = event.to_words();
        let [place, places @ ..] = &self.words[EVENTS_AT + index * EVENT_WORDS..][..EVENT_WORDS]
        else {
            return;
        };
        for (place, word) in places.iter().zip(rest) {
            place.store(word, Ordering::Relaxed);
        }
        // The start comes last: an event without one is not complete.
        place.store(start, Ordering::Release);
    }
}

/// The largest file that this process may make. One that is larger would be a signal.
fn file_size_limit() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` outlives the call.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    limit.rlim_cur
}

/// A frame as a line of text.
fn line(frame: &Frame) -> String {
    let clean = |text: &str| text.replace(['\n', '\t'], " ");
    match frame {
        Frame::Python {
            file,
            line,
            function,
        } => format!("P\t{line}\t{}\t{}", clean(function), clean(file)),
        Frame::Native {
            name,
            module,
            offset,
        } => format!("N\t{offset}\t{}\t{}", clean(name), clean(module)),
    }
}

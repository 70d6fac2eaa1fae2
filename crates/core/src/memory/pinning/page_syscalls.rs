//! System calls that map memory and fault it in.

use std::fs;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::time::Instant;

use crate::memory::page_bytes;

/// Huge page size on machines with GPUs.
pub(in crate::memory) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A system error number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::memory) struct Errno(pub(super) i32);

/// System calls for memory, and the clock.
///
/// # Safety
/// The unsafe calls take a range returned by `map`, or whole pages of one.
pub(in crate::memory) trait Pages: Sync {
    /// Whether these calls work on this system.
    fn work(&self) -> bool;

    /// Maps `bytes` of private zeroed memory without faulting it in, aligned to a huge page.
    fn map(&self, bytes: usize) -> Result<NonNull<u8>, Errno>;

    /// Undoes `map`.
    ///
    /// # Safety
    /// The range is exactly what `map` returned, and nothing uses it any more.
    unsafe fn unmap(&self, start: NonNull<u8>, bytes: usize);

    /// Whether the system can provide huge pages at all.
    fn have_huge(&self) -> bool;

    /// Turns huge pages on or off for the range.
    unsafe fn advise_huge(&self, start: NonNull<u8>, bytes: usize, yes: bool) -> Result<(), Errno>;

    /// Prefers memory of this NUMA node.
    unsafe fn prefer_node(&self, start: NonNull<u8>, bytes: usize, node: u32) -> Result<(), Errno>;

    /// Faults in all pages for writing, in one call.
    unsafe fn populate(&self, start: NonNull<u8>, bytes: usize) -> Result<(), Errno>;

    /// Faults in all pages, one by one.
    ///
    /// # Safety
    /// See the trait, and nothing else accesses the range during the call.
    unsafe fn touch(&self, start: NonNull<u8>, bytes: usize);

    /// Monotonic time in nanoseconds.
    fn now_ns(&self) -> u64;
}

/// The real system calls.
pub(in crate::memory) struct System;

impl Pages for System {
    fn work(&self) -> bool {
        // miri cannot map memory at a chosen address, and has no `madvise`.
        !cfg!(miri)
    }

    fn map(&self, bytes: usize) -> Result<NonNull<u8>, Errno> {
        // Map extra so that the range contains a huge page boundary, then unmap both ends.
        let slack = HUGE_PAGE_BYTES - page_bytes();
        let all_bytes = bytes.checked_add(slack).ok_or(Errno(libc::ENOMEM))?;
        // SAFETY: a new private mapping at an address the system chooses affects nothing else.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                all_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(last_error());
        }
        let start = NonNull::new(start.cast::<u8>()).ok_or(Errno(libc::ENOMEM))?;
        let before = start.align_offset(HUGE_PAGE_BYTES).min(slack);
        // SAFETY: both ends are inside the new mapping, of which only the middle is kept.
        unsafe {
            let middle = start.add(before);
            self.unmap(start, before);
            self.unmap(middle.add(bytes), slack - before);
            Ok(middle)
        }
    }

    unsafe fn unmap(&self, start: NonNull<u8>, bytes: usize) {
        if bytes > 0 {
            // SAFETY: the caller gives up whole pages of its own mapping.
            let code = unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
            debug_assert_eq!(code, 0, "{:?}", last_error());
        }
    }

    fn have_huge(&self) -> bool {
        static HAVE: OnceLock<bool> = OnceLock::new();
        *HAVE.get_or_init(|| {
            let enabled = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
            enabled.is_ok_and(|words| !words.contains("[never]"))
        })
    }

    unsafe fn advise_huge(&self, start: NonNull<u8>, bytes: usize, yes: bool) -> Result<(), Errno> {
        let advice = match yes {
            true => libc::MADV_HUGEPAGE,
            false => libc::MADV_NOHUGEPAGE,
        };
        // SAFETY: the caller's own mapping; the advice does not change its contents.
        check(unsafe { libc::madvise(start.as_ptr().cast(), bytes, advice) }.into())
    }

    unsafe fn prefer_node(&self, start: NonNull<u8>, bytes: usize, node: u32) -> Result<(), Errno> {
        const WORD_BITS: usize = libc::c_ulong::BITS as usize;
        // The most nodes any kernel is built for.
        let mut nodes = [0 as libc::c_ulong; 1024 / WORD_BITS];
        let (word, bit) = (node as usize / WORD_BITS, node as usize % WORD_BITS);
        *nodes.get_mut(word).ok_or(Errno(libc::EINVAL))? |= 1 << bit;
        // The kernel expects one more than the number of bits.
        let count = nodes.len() * WORD_BITS + 1;
        // SAFETY: the caller's own mapping, and `nodes` outlives the call. libc has no wrapper.
        check(unsafe {
            libc::syscall(
                libc::SYS_mbind,
                start.as_ptr(),
                bytes,
                libc::MPOL_PREFERRED,
                nodes.as_ptr(),
                count,
                0,
            )
        })
    }

    unsafe fn populate(&self, start: NonNull<u8>, bytes: usize) -> Result<(), Errno> {
        loop {
            // SAFETY: the caller's own mapping; resident pages keep their contents.
            let code =
                unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_POPULATE_WRITE) };
            match check(code.into()) {
                // Interrupted by a signal. Resident pages stay, so retry for the rest.
                Err(Errno(libc::EINTR)) => {}
                result => return result,
            }
        }
    }

    unsafe fn touch(&self, start: NonNull<u8>, bytes: usize) {
        for at in (0..bytes).step_by(page_bytes()) {
            // SAFETY: inside the caller's own mapping, where fresh memory is zero.
            unsafe { start.add(at).write_volatile(0) };
        }
    }

    fn now_ns(&self) -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

fn check(code: libc::c_long) -> Result<(), Errno> {
    if code == 0 { Ok(()) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    Errno(io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// Fresh private zeroed memory, unmapped on drop.
pub(super) struct Mapping {
    pub(super) pages: &'static dyn Pages,
    pub(super) start: NonNull<u8>,
    pub(super) bytes: usize,
}

// SAFETY: it owns the mapped memory, as a `Box<[u8]>` would.
unsafe impl Send for Mapping {}
// SAFETY: shared access only passes ranges of it to system calls that any thread may make.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes`, which is a multiple of the page size.
    pub(super) fn new(pages: &'static dyn Pages, bytes: usize) -> Result<Self, Errno> {
        let start = pages.map(bytes)?;
        Ok(Self {
            pages,
            start,
            bytes,
        })
    }

    /// Prefers pages of this NUMA node. Call before any page is faulted in.
    pub(super) fn prefer_node(&self, node: u32) {
        // SAFETY: the range is this mapping, and the call moves no data.
        let _ = unsafe { self.pages.prefer_node(self.start, self.bytes, node) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nothing points into it any more.
        unsafe { self.pages.unmap(self.start, self.bytes) };
    }
}

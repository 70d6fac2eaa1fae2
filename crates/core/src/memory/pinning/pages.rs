//! System calls that map memory and fault it in.

use std::fs;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::time::Instant;

use crate::memory::page_bytes;

/// A huge page on the machines that have GPUs.
pub(in crate::memory) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The number of an error of the system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::memory) struct Errno(pub(super) i32);

/// What the system is asked for, and the clock.
///
/// The unsafe calls take a range that `map` gave, or whole pages of it.
pub(in crate::memory) trait Pages: Sync {
    /// Whether any of this works here.
    fn work(&self) -> bool;

    /// Maps `bytes` of private zeros, none of them there yet; at a huge page's border where that
    /// can be useful.
    fn map(&self, bytes: usize) -> Result<NonNull<u8>, Errno>;

    /// Undoes `map`.
    ///
    /// # Safety
    /// The whole of what `map` gave, and nothing uses it any more.
    unsafe fn unmap(&self, start: NonNull<u8>, bytes: usize);

    /// Whether the system may give huge pages at all.
    fn have_huge(&self) -> bool;

    /// Ask for huge pages, or for none.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn advise_huge(&self, start: NonNull<u8>, bytes: usize, yes: bool) -> Result<(), Errno>;

    /// Ask for memory of this NUMA node.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn prefer_node(&self, start: NonNull<u8>, bytes: usize, node: u32) -> Result<(), Errno>;

    /// Faults all pages in, to be written, in one call.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn populate(&self, start: NonNull<u8>, bytes: usize) -> Result<(), Errno>;

    /// Faults all pages in, one by one.
    ///
    /// # Safety
    /// See the trait, and nobody else touches the range meanwhile.
    unsafe fn touch(&self, start: NonNull<u8>, bytes: usize);

    /// Nanoseconds since some moment.
    fn now_ns(&self) -> u64;
}

/// The real ones.
pub(in crate::memory) struct System;

impl Pages for System {
    fn work(&self) -> bool {
        // miri maps no memory at places of our choice, and advises nothing.
        !cfg!(miri)
    }

    fn map(&self, bytes: usize) -> Result<NonNull<u8>, Errno> {
        // More than is needed, so that a huge page's border lies in it; the ends go back.
        let slack = HUGE_PAGE_BYTES - page_bytes();
        let all_bytes = bytes.checked_add(slack).ok_or(Errno(libc::ENOMEM))?;
        // SAFETY: a new private mapping at a place of the system's choice touches nothing else.
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
        // SAFETY: all inside of the new mapping, of which only the middle is kept.
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
        let advice = if yes {
            libc::MADV_HUGEPAGE
        } else {
            libc::MADV_NOHUGEPAGE
        };
        // SAFETY: the caller's own mapping; the advice changes no bytes.
        check(unsafe { libc::madvise(start.as_ptr().cast(), bytes, advice) }.into())
    }

    unsafe fn prefer_node(&self, start: NonNull<u8>, bytes: usize, node: u32) -> Result<(), Errno> {
        const WORD_BITS: usize = libc::c_ulong::BITS as usize;
        // As many nodes as the kernel is ever built for.
        let mut nodes = [0 as libc::c_ulong; 1024 / WORD_BITS];
        let (word, bit) = (node as usize / WORD_BITS, node as usize % WORD_BITS);
        *nodes.get_mut(word).ok_or(Errno(libc::EINVAL))? |= 1 << bit;
        // One more than there are bits, which is how the kernel counts them.
        let count = nodes.len() * WORD_BITS + 1;
        // SAFETY: the caller's own mapping, and `nodes` outlives the call. libc has no name for it.
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
            // SAFETY: the caller's own mapping; pages that are there keep their bytes.
            let code =
                unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_POPULATE_WRITE) };
            match check(code.into()) {
                // A signal came in between; what is there stays, and the rest follows.
                Err(Errno(libc::EINTR)) => {}
                result => return result,
            }
        }
    }

    unsafe fn touch(&self, start: NonNull<u8>, bytes: usize) {
        for at in (0..bytes).step_by(page_bytes()) {
            // SAFETY: inside of the caller's own mapping, where fresh memory is zero.
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

/// Fresh private memory of zeros, unmapped when it is dropped.
pub(super) struct Mapping {
    pages: &'static dyn Pages,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns the mapped memory, as a `Box<[u8]>` would.
unsafe impl Send for Mapping {}
// SAFETY: shared access gives out the address and passes ranges of it to system calls that every
// thread may make.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `bytes` is in whole pages.
    pub(super) fn new(pages: &'static dyn Pages, bytes: usize) -> Result<Self, Errno> {
        let start = pages.map(bytes)?;
        Ok(Self {
            pages,
            start,
            bytes,
        })
    }

    pub(super) fn pages(&self) -> &'static dyn Pages {
        self.pages
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Ask for pages of this NUMA node, before any is there.
    pub(super) fn prefer_node(&self, node: u32) {
        // SAFETY: the range is this mapping, and asking moves no bytes.
        let _ = unsafe { self.pages.prefer_node(self.start, self.bytes, node) };
    }

    /// Leave it mapped for good.
    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nothing points into it any more.
        unsafe { self.pages.unmap(self.start, self.bytes) };
    }
}

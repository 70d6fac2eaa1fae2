//! How much of a file is in the page cache.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use pinlane_core::memory::page_bytes;

/// The share of a range that is in the page cache, from 0 to 1. `None` if the system does not tell.
pub(super) fn cached_share(file: &File, range: &Range<u64>) -> Option<f64> {
    static NO_CACHESTAT: AtomicBool = AtomicBool::new(false);
    let page_bytes = page_bytes() as u64;
    let start = range.start / page_bytes * page_bytes;
    let pages = (range.end - start).div_ceil(page_bytes);
    if pages == 0 {
        return None;
    }
    let counted = match NO_CACHESTAT.load(Ordering::Relaxed) {
        false => cachestat(file, start, pages * page_bytes),
        true => Err(io::Error::from_raw_os_error(libc::ENOSYS)),
    };
    let (cached, pages) = match counted {
        Ok(cached) => (cached, pages),
        // Linux before 6.5, and some sandboxes.
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            NO_CACHESTAT.store(true, Ordering::Relaxed);
            (mincore(file, start, pages).ok()?, pages)
        }
        // A file of another user that we may not write: `mincore` then reports every page as cached.
        Err(_) => (probe(file, start, pages), pages.min(PROBES)),
    };
    Some(cached as f64 / pages as f64)
}

/// Pages to probe if the system does not tell about all of them.
const PROBES: u64 = 16;

/// Of [`PROBES`] pages, spread evenly over the range: how many can be read without blocking.
fn probe(file: &File, start: u64, pages: u64) -> u64 {
    let probes = pages.min(PROBES);
    let at = |number: u64| start + number * pages / probes * page_bytes() as u64;
    (0..probes)
        .filter(|number| is_cached(file, at(*number)))
        .count() as u64
}

fn is_cached(file: &File, at: u64) -> bool {
    let mut byte = 0u8;
    let target = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let fd = file.as_raw_fd();
    libc::off_t::try_from(at).is_ok_and(|at| {
        // SAFETY: writes one byte, to a local variable.
        unsafe { libc::preadv2(fd, &raw const target, 1, at, libc::RWF_NOWAIT) == 1 }
    })
}

fn cachestat(file: &File, start: u64, bytes: u64) -> io::Result<u64> {
    const NUMBER: libc::c_long = 451;
    let range = [start, bytes];
    // Pages in the cache, dirty, under writeback, evicted, recently evicted.
    let mut stat = [0u64; 5];
    let (fd, stats) = (file.as_raw_fd(), stat.as_mut_ptr());
    // SAFETY: the call reads the two numbers of `range` and writes five to `stat`; both are valid.
    match unsafe { libc::syscall(NUMBER, fd, range.as_ptr(), stats, 0) } {
        0 => Ok(stat[0]),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Number of cached pages of a range, on older systems.
fn mincore(file: &File, start: u64, pages: u64) -> io::Result<u64> {
    let too_far = || io::Error::from(io::ErrorKind::InvalidInput);
    let bytes = usize::try_from(pages * page_bytes() as u64).map_err(|_| too_far())?;
    let offset = libc::off_t::try_from(start).map_err(|_| too_far())?;
    let mut seen = vec![0u8; bytes / page_bytes()];
    // SAFETY: a new mapping at an address the system chooses, never read through, and unmapped before
    // this returns. `mincore` writes one byte per page to `seen`.
    unsafe {
        let (reads, shared) = (libc::PROT_READ, libc::MAP_SHARED);
        let fd = file.as_raw_fd();
        let mapped = libc::mmap(std::ptr::null_mut(), bytes, reads, shared, fd, offset);
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let failed = libc::mincore(mapped, bytes, seen.as_mut_ptr()) != 0;
        let error = io::Error::last_os_error();
        libc::munmap(mapped, bytes);
        if failed {
            return Err(error);
        }
    }
    Ok(seen.iter().filter(|page| *page & 1 == 1).count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "calls the system")]
    fn every_method_sees_a_file_that_was_just_written() {
        let path = std::env::temp_dir().join(format!("pinlane-page-cache-{}", std::process::id()));
        std::fs::write(&path, vec![7u8; 10 * 4096 + 5]).unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(mincore(&file, 4096, 10).unwrap(), 10);
        if let Ok(pages) = cachestat(&file, 4096, 10 * 4096) {
            assert_eq!(pages, 10);
        }
        assert_eq!(probe(&file, 4096, 10), 10);
        // Every sixth page, and there are eleven.
        assert_eq!(probe(&file, 0, 100), 2);
        assert_eq!(cached_share(&file, &(5000..40_000)), Some(1.0));
        assert_eq!(cached_share(&file, &(0..0)), None);
        std::fs::remove_file(&path).unwrap();
    }
}

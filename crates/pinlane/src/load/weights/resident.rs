//! How much of a file is in the page cache.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

const PAGE_BYTES: u64 = 4096;

/// The part of a range that is in the page cache, from 0 to 1. `None` where the system does not
/// say.
pub(super) fn resident_share(file: &File, range: &Range<u64>) -> Option<f64> {
    static NO_CACHESTAT: AtomicBool = AtomicBool::new(false);
    let start = range.start / PAGE_BYTES * PAGE_BYTES;
    let pages = (range.end - start).div_ceil(PAGE_BYTES);
    if pages == 0 {
        return None;
    }
    let mut cached = None;
    if !NO_CACHESTAT.load(Ordering::Relaxed) {
        match cachestat(file, start, pages * PAGE_BYTES) {
            Ok(pages) => cached = Some(pages),
            // Before Linux 6.5, in some sandboxes, or a file that is not ours.
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                NO_CACHESTAT.store(true, Ordering::Relaxed);
            }
            Err(_) => {}
        }
    }
    let cached = cached.or_else(|| mincore(file, start, pages).ok())?;
    Some(cached as f64 / pages as f64)
}

/// Pages of a range that are in the cache.
fn cachestat(file: &File, start: u64, bytes: u64) -> io::Result<u64> {
    const NUMBER: libc::c_long = 451;
    #[repr(C)]
    struct CacheRange {
        off: u64,
        len: u64,
    }
    let range = CacheRange {
        off: start,
        len: bytes,
    };
    // Pages in the cache, dirty, under writeback, evicted, recently evicted.
    let mut stat = [0u64; 5];
    // SAFETY: the call reads a range and writes five numbers, and both are there.
    let result = unsafe {
        libc::syscall(
            NUMBER,
            file.as_raw_fd(),
            &raw const range,
            stat.as_mut_ptr(),
            0,
        )
    };
    match result {
        0 => Ok(stat[0]),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The same for older systems.
fn mincore(file: &File, start: u64, pages: u64) -> io::Result<u64> {
    let too_far = || io::Error::from(io::ErrorKind::InvalidInput);
    let bytes = usize::try_from(pages * PAGE_BYTES).map_err(|_| too_far())?;
    let offset = libc::off_t::try_from(start).map_err(|_| too_far())?;
    let mut seen = vec![0u8; bytes / PAGE_BYTES as usize];
    // SAFETY: a new mapping at a place that the system chooses; nobody reads through it, and it is
    // gone before this returns. One byte for each page is written.
    let result = unsafe {
        let (reads, shared) = (libc::PROT_READ, libc::MAP_SHARED);
        let fd = file.as_raw_fd();
        let mapped = libc::mmap(std::ptr::null_mut(), bytes, reads, shared, fd, offset);
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let result = match libc::mincore(mapped, bytes, seen.as_mut_ptr()) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        };
        libc::munmap(mapped, bytes);
        result
    };
    result.map(|()| seen.iter().filter(|page| *page & 1 == 1).count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "calls the system")]
    fn both_ways_of_asking_see_a_file_that_was_just_written() {
        let path = std::env::temp_dir().join(format!("pinlane-resident-{}", std::process::id()));
        std::fs::write(&path, vec![7u8; 10 * 4096 + 5]).unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(mincore(&file, 4096, 10).unwrap(), 10);
        if let Ok(pages) = cachestat(&file, 4096, 10 * 4096) {
            assert_eq!(pages, 10);
        }
        assert_eq!(resident_share(&file, &(5000..40_000)), Some(1.0));
        assert_eq!(resident_share(&file, &(0..0)), None);
        std::fs::remove_file(&path).unwrap();
    }
}

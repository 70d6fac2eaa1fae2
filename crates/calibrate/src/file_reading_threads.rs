//! Best number of threads for reading files in the page cache. Not measured on a simulated device, whose
//! clock does not see host threads.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};

use pinlane_model::{FileCosts, median};

use super::timing_harness::{Bench, MIB};
use pinlane_core::internal;
use pinlane_load::{Io, LoadConfig, LoadError, Weights};

/// Size of the file: about twelve pieces.
const FILE_BYTES: usize = 192 * MIB;

/// Thread counts to try, up to the number of CPUs of the process.
const THREADS: [usize; 11] = [1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 24];

/// Each round measures everything once.
const ROUNDS: usize = 9;

/// Prefer fewer threads if they lose no more than this.
const LOSS_PERCENT: u64 = 2;

/// Returns `None` if it cannot be measured: no such file, or no room on the device.
pub(super) fn measure(bench: &Bench<'_>) -> Option<FileCosts> {
    if bench.device.info().simulated.is_some() {
        return None;
    }
    let file = in_memory().ok()?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let measured = Weights::open(path).and_then(|weights| best(bench, &weights));
    bench.device.trim();
    measured.ok()
}

fn best(bench: &Bench<'_>, weights: &Weights) -> Result<FileCosts, LoadError> {
    let cpus = internal::cpus();
    let tried: Vec<usize> = THREADS.into_iter().filter(|tried| *tried <= cpus).collect();
    let mut times = vec![Vec::new(); tried.len()];
    for round in 0..=ROUNDS {
        for (threads, times) in tried.iter().zip(&mut times) {
            let config = LoadConfig::default().io(Io::Buffered).threads(*threads);
            let (tensors, took_ns) = bench.timed(|| weights.load(bench.device, &config));
            drop(tensors?);
            // The first round page-locks the slots, so it does not count.
            if round > 0 {
                times.push(took_ns);
            }
        }
    }
    let times: Vec<u64> = times.into_iter().map(median).collect();
    let chosen = fewest(&times);
    let ns = u128::from(times[chosen].max(1));
    let bytes_per_s = FILE_BYTES as u128 * 1_000_000_000 / ns;
    Ok(FileCosts {
        threads: tried[chosen] as u32,
        bytes_per_s: u64::try_from(bytes_per_s).unwrap_or(u64::MAX),
    })
}

/// Index of the first time that is nearly as good as the best.
fn fewest(times: &[u64]) -> usize {
    let best = times.iter().min().copied().unwrap_or(0);
    let enough = best.saturating_add(best / 100 * LOSS_PERCENT);
    let chosen = times.iter().position(|time| *time <= enough);
    chosen.expect("the best one is good enough")
}

/// A file with one tensor, in memory only.
fn in_memory() -> io::Result<File> {
    // SAFETY: the name is NUL-terminated.
    let number = unsafe { libc::memfd_create(c"pinlane".as_ptr(), libc::MFD_CLOEXEC) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just created, and nothing else owns it.
    let mut file = unsafe { File::from_raw_fd(number) };
    let header = format!(
        r#"{{"bytes":{{"dtype":"U8","shape":[{FILE_BYTES}],"data_offsets":[0,{FILE_BYTES}]}}}}"#
    );
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    let block = vec![1; MIB];
    for _ in 0..FILE_BYTES / MIB {
        file.write_all(&block)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::fewest;

    #[test]
    fn fewer_threads_where_they_lose_little() {
        assert_eq!(fewest(&[1000]), 0);
        assert_eq!(fewest(&[4000, 2000, 1030, 1000, 1010]), 3);
        assert_eq!(fewest(&[4000, 2000, 1015, 1000, 1400]), 2);
        assert_eq!(fewest(&[0, 0]), 0);
    }

    #[test]
    fn a_file_that_is_on_no_disk() {
        if cfg!(miri) {
            return; // miri cannot create such files
        }
        let file = super::in_memory().expect("memory enough");
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let weights = pinlane_load::Weights::open(path).expect("a good file");
        assert_eq!(weights.tensors()[0].len_bytes(), super::FILE_BYTES as u64);
    }
}

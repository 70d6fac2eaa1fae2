//! The file that holds a process's counters.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapMut, MmapOptions};

use crate::counters::{COUNTERS, Counter, Counters};

/// Stands in [`Counter::Format`] of a file with this layout.
const FORMAT: u64 = 1;

/// The ending of counter files.
const ENDING: &str = "counters";

/// The counters of this process, in memory that it shares with a file, if there is one.
pub struct CounterFile {
    slots: &'static [AtomicU64; COUNTERS],
}

impl CounterFile {
    /// Size of the file.
    pub const BYTES: usize = COUNTERS * size_of::<u64>();

    /// Makes a file in `folder`.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let process = std::process::id();
        let mut number = 0;
        // A process that replaces its program by another one has had a file already.
        let mut file = loop {
            let path = folder.join(format!("{process}-{number}.{ENDING}"));
            let mut options = OpenOptions::new();
            match options.read(true).write(true).create_new(true).open(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                opened => break opened?,
            }
        };
        // Written, not only extended: in a mapping a full disk would be a signal.
        file.write_all(&[0; Self::BYTES])?;
        // SAFETY: nobody truncates the file: its folder belongs to the tool that reads it.
        Ok(Self::over(unsafe { MmapOptions::new().map_mut(&file) }?))
    }

    /// Counters without a file.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn in_memory() -> io::Result<Self> {
        Ok(Self::over(MmapMut::map_anon(Self::BYTES)?))
    }

    fn over(map: MmapMut) -> Self {
        // Counted to until the process ends.
        let map = Box::leak(Box::new(map));
        // SAFETY: the mapping is page-aligned, has the size of the array, and lives for good. Atomics may be shared
        // with the tool, which reads them.
        let slots = unsafe { &*map.as_mut_ptr().cast::<[AtomicU64; COUNTERS]>() };
        slots[Counter::Format.index()].store(FORMAT, Ordering::Relaxed);
        Self { slots }
    }

    /// Adds to a counter.
    pub fn add(&self, counter: Counter, amount: u64) {
        self.slots[counter.index()].fetch_add(amount, Ordering::Relaxed);
    }

    /// Sets a counter.
    pub fn set(&self, counter: Counter, value: u64) {
        self.slots[counter.index()].store(value, Ordering::Relaxed);
    }

    /// The counters as they are now.
    #[must_use]
    pub fn values(&self) -> Counters {
        let values = self.slots.iter().map(|slot| slot.load(Ordering::Relaxed));
        Counters::new(values.collect())
    }
}

/// The counters of every process that has left a file in `folder`.
///
/// # Errors
/// If the folder cannot be read.
pub fn read_all(folder: &Path) -> io::Result<Vec<Counters>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == ENDING) {
            // One that is gone or unreadable does not count.
            all.extend(fs::read(path).ok().as_deref().and_then(parse));
        }
    }
    Ok(all)
}

/// The counters in a file; `None` for one that is not finished, or of another version.
fn parse(bytes: &[u8]) -> Option<Counters> {
    if bytes.len() != CounterFile::BYTES {
        return None;
    }
    let (words, _) = bytes.as_chunks::<8>();
    let values: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    (values[Counter::Format.index()] == FORMAT).then(|| Counters::new(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_read() {
        let folder = std::env::temp_dir().join(format!("pinlane-counters-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let first = CounterFile::create(&folder).unwrap();
        let second = CounterFile::create(&folder).unwrap();
        first.add(Counter::OtherCopies, 2);
        second.add(Counter::OtherCopies, 3);
        second.set(Counter::FoundDriver, 1);
        fs::write(folder.join("1.counters"), "not finished").unwrap();
        fs::write(folder.join("other"), "of somebody else").unwrap();

        let all = read_all(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(all.len(), 2);
        let sum: u64 = all.iter().map(|it| it.get(Counter::OtherCopies)).sum();
        assert_eq!(sum, 5);
        assert_eq!(second.values().get(Counter::OtherCopies), 3);
    }
}

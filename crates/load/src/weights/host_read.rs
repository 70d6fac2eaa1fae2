//! Reads weights into host memory.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::rank_sharing::threads_of_rank;
use super::{LoadConfig, Weights};
use crate::dtype::element_bytes;
use crate::file_info::read_exact;
use crate::{Dtype, LoadError, LoadErrorKind, TensorInfo};
use pinlane_core::internal::cpus;
use pinlane_kernels::convert::floats;

/// Bytes of a file that a thread reads at once.
const PART_BYTES: u64 = 4 << 20;

/// Bytes below which starting another thread costs more than it saves.
const BYTES_PER_THREAD_MIN: u64 = 4 << 20;

/// Threads at most: a few saturate host memory.
const THREADS_MAX: usize = 16;

/// A range of a tensor, and where its bytes go.
struct HostPart<'a> {
    tensor: &'a TensorInfo,
    from_bytes: u64,
    len_bytes: u64,
    target: &'a mut [u8],
}

impl Weights {
    /// Reads the selected tensors into host memory, one target per tensor, through the page cache. Of the settings,
    /// [`threads`](LoadConfig::threads), [`convert`](LoadConfig::convert) and [`local_rank`](LoadConfig::local_rank)
    /// apply.
    ///
    /// ```
    /// use pinlane::load::{Dtype, LoadConfig, Weights};
    ///
    /// # let path = "tests/data/load/sharded";
    /// let weights = Weights::open(path)?;
    /// let layer = weights.catalog().tensor("model.layers.0.weight")?.clone(); // F32 [4, 2]
    /// let mut bytes = [0; 32];
    /// weights.clone().only(vec![layer.clone()]).read_into(&LoadConfig::default(), &mut [&mut bytes])?;
    ///
    /// let mut halves = [0; 16];
    /// let config = LoadConfig::default().convert(Dtype::F16);
    /// weights.only(vec![layer]).read_into(&config, &mut [&mut halves])?;
    /// # Ok::<(), pinlane::load::LoadError>(())
    /// ```
    ///
    /// # Errors
    /// [`LoadErrorKind::TargetSize`] for a target of another size, [`LoadErrorKind::OtherCatalog`], and errors of the
    /// files. Then the contents of the targets are unspecified.
    ///
    /// # Panics
    /// If there are not as many targets as selected tensors.
    pub fn read_into(
        &self,
        config: &LoadConfig,
        targets: &mut [&mut [u8]],
    ) -> Result<(), LoadError> {
        assert_eq!(self.tensors.len(), targets.len(), "one target per tensor");
        if let Some(to) = config.convert
            && to.float_kind().is_none()
        {
            return Err(LoadErrorKind::NotAFloat { to }.into());
        }
        let mut parts = Vec::with_capacity(targets.len());
        for (tensor, target) in self.tensors.iter().zip(targets) {
            if !self.catalog.contains(tensor) {
                return Err(tensor.error(LoadErrorKind::OtherCatalog));
            }
            parts_of(tensor, config.convert, target, &mut parts)?;
        }
        // Ranks of one machine share the page cache, so each begins at another place.
        let local_rank = config.rank_of_machine();
        let first = parts.len() * local_rank.rank() / local_rank.world();
        parts.rotate_left(first);
        let files = self.open_files()?;
        let total: u64 = parts.iter().map(|part| part.len_bytes).sum();
        let default_threads = || threads_of_rank(cpus().min(THREADS_MAX), local_rank);
        let wanted = config.threads.unwrap_or_else(default_threads);
        let worthwhile = usize::try_from(total / BYTES_PER_THREAD_MIN).unwrap_or(usize::MAX);
        let reading = HostRead {
            weights: self,
            files: &files,
            convert: config.convert,
            parts: Mutex::new(parts.into_iter()),
            failed: AtomicBool::new(false),
        };
        reading.on_threads(wanted.min(worthwhile).max(1))?;
        for (file, info) in files.iter().zip(self.catalog.files()) {
            if let Some(file) = file {
                info.check(file)?;
            }
        }
        Ok(())
    }

    /// The files of the selected tensors.
    fn open_files(&self) -> Result<Vec<Option<File>>, LoadError> {
        let mut files: Vec<_> = self.catalog.files().iter().map(|_| None).collect();
        for tensor in self.tensors.iter().filter(|tensor| tensor.len_bytes() > 0) {
            if files[tensor.file()].is_none() {
                files[tensor.file()] = Some(self.catalog.files()[tensor.file()].open()?);
            }
        }
        Ok(files)
    }
}

/// Cuts a tensor into parts of whole elements.
fn parts_of<'a>(
    tensor: &'a TensorInfo,
    convert: Option<Dtype>,
    mut target: &'a mut [u8],
    parts: &mut Vec<HostPart<'a>>,
) -> Result<(), LoadError> {
    let kinds = convert.and_then(|to| tensor.dtype().conversion_to(to));
    let (from, to) = element_bytes(kinds);
    let expected = tensor.len_bytes() / from * to;
    if target.len() as u64 != expected {
        let (found, expected) = (target.len(), expected as usize);
        return Err(tensor.error(LoadErrorKind::TargetSize { found, expected }));
    }
    let mut done = 0;
    while done < tensor.len_bytes() {
        let len_bytes = PART_BYTES.min(tensor.len_bytes() - done);
        let (part, rest) = target.split_at_mut((len_bytes / from * to) as usize);
        parts.push(HostPart {
            tensor,
            from_bytes: tensor.bytes().start + done,
            len_bytes,
            target: part,
        });
        target = rest;
        done += len_bytes;
    }
    Ok(())
}

struct HostRead<'a> {
    weights: &'a Weights,
    files: &'a [Option<File>],
    convert: Option<Dtype>,
    parts: Mutex<std::vec::IntoIter<HostPart<'a>>>,
    failed: AtomicBool,
}

impl<'a> HostRead<'a> {
    fn on_threads(&self, threads: usize) -> Result<(), LoadError> {
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads)
                .map_while(|number| {
                    let name = format!("pinlane-read-{number}");
                    let builder = thread::Builder::new().name(name);
                    // Fewer threads will do.
                    builder.spawn_scoped(scope, || self.read_all()).ok()
                })
                .collect();
            let mut result = self.read_all();
            for other in others {
                let other = other.join();
                result = result.and(other.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            result
        })
    }

    fn read_all(&self) -> Result<(), LoadError> {
        let mut stored = Vec::new();
        while let Some(parts) = self.next_parts() {
            for part in parts {
                let tensor = part.tensor;
                if let Err(kind) = self.read(part, &mut stored) {
                    self.failed.store(true, Ordering::Relaxed);
                    let path = self.weights.catalog.files()[tensor.file()].path();
                    return Err(tensor.error(kind).with_file(path));
                }
            }
        }
        Ok(())
    }

    /// Some parts: one large, or several small ones, so that threads rarely wait for each other here.
    fn next_parts(&self) -> Option<Vec<HostPart<'a>>> {
        const PARTS_AT_ONCE: usize = 32;
        if self.failed.load(Ordering::Relaxed) {
            return None;
        }
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = vec![parts.next()?];
        let mut bytes = taken[0].len_bytes;
        while taken.len() < PARTS_AT_ONCE
            && let Some(next) = parts.as_slice().first()
            && bytes + next.len_bytes <= PART_BYTES
        {
            bytes += next.len_bytes;
            taken.extend(parts.next());
        }
        Some(taken)
    }

    fn read(&self, part: HostPart<'a>, stored: &mut Vec<u8>) -> Result<(), LoadErrorKind> {
        let dtype = part.tensor.dtype();
        let file = self.files[part.tensor.file()].as_ref().expect("opened");
        match self.convert.and_then(|to| dtype.conversion_to(to)) {
            None => read_exact(file, part.target, part.from_bytes),
            Some((from, to)) => {
                stored.resize(part.len_bytes as usize, 0);
                read_exact(file, stored, part.from_bytes)?;
                floats(from, to, stored, part.target);
                Ok(())
            }
        }
    }
}

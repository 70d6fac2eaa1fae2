//! Reading back what was loaded, by several threads.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use pinlane::Device;
use pinlane::load::{LoadError, Tensor, Weights};

use super::progress::Progress;
use crate::interrupt::Interrupt;

/// Each compares some ten MiB at a time, in memory of its own.
const THREADS: usize = 4;

/// How it went.
pub(super) struct Verified {
    /// Tensors that are as in the files.
    pub(super) tensors: usize,
    /// The first thing that was wrong, in the order of the tensors.
    pub(super) failure: Option<LoadError>,
}

/// Compare every byte of these tensors with their files. Ends early when something is wrong, or when
/// the user wants it.
pub(super) fn all(
    weights: &Weights,
    device: &Device,
    tensors: &[Tensor],
    interrupt: &Interrupt,
) -> Verified {
    let bytes = |tensor: &Tensor| tensor.info().len_bytes();
    let bar = Progress::new("verifying".to_owned(), tensors.iter().map(bytes).sum());
    let (next, good, reached) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicU64::new(0));
    let first_failure: Mutex<Option<(usize, LoadError)>> = Mutex::new(None);
    let failure = || first_failure.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        // Tensors are taken in order, and those before one that fails are compared to the end.
        while !interrupt.is_raised() && failure().is_none() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(tensor) = tensors.get(number) else {
                break;
            };
            match weights.verify(device, tensor) {
                Ok(()) => {
                    good.fetch_add(1, Ordering::Relaxed);
                    let before = reached.fetch_add(bytes(tensor), Ordering::Relaxed);
                    bar.reached(before + bytes(tensor));
                }
                Err(error) => {
                    let mut first = failure();
                    if first.as_ref().is_none_or(|(other, _)| number < *other) {
                        *first = Some((number, error));
                    }
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..THREADS.min(tensors.len()) {
            // Fewer will do.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    bar.end();
    let failure = failure().take().map(|(_, error)| error);
    Verified {
        tensors: good.load(Ordering::Relaxed),
        failure,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, FileTimes};
    use std::io::{Seek, SeekFrom, Write};

    use pinlane::load::{LoadConfig, LoadErrorKind};
    use pinlane_model::Profile;
    use pinlane_sim::Sim;

    use super::*;

    const TENSORS: usize = 40;
    const TENSOR_BYTES: usize = 1000;

    /// Tensors of one byte over and over.
    fn file() -> Vec<u8> {
        let entries: Vec<_> = (0..TENSORS)
            .map(|number| {
                let start = number * TENSOR_BYTES;
                let end = start + TENSOR_BYTES;
                format!(
                    "\"t{number}\":{{\"dtype\":\"U8\",\"shape\":[{TENSOR_BYTES}],\"data_offsets\":[{start},{end}]}}"
                )
            })
            .collect();
        let header = format!("{{{}}}", entries.join(","));
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        file.extend((0..TENSORS).flat_map(|number| [number as u8; TENSOR_BYTES]));
        file
    }

    #[test]
    fn the_first_difference_is_told_with_file_tensor_and_byte() {
        let name = format!("pinlane-verify-{}.safetensors", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, file()).expect("written");
        let sim = Sim::new(Profile::builtin("pcie3-x16").expect("built in"));
        let device = Device::open(&sim, 0).expect("a device");
        let weights = Weights::open(&path).expect("a good file");
        let loaded = weights.load(&device, &LoadConfig::default());
        let mut tensors: Vec<_> = loaded.expect("loads").into_iter().collect();
        tensors.sort_by_key(|tensor| tensor.info().bytes().start);
        let interrupt = Interrupt::listen().expect("signals");

        let went = all(&weights, &device, &tensors, &interrupt);
        assert_eq!((went.tensors, went.failure), (TENSORS, None));

        // Bytes change in two tensors, and the file looks as it did before.
        let mut changed = File::options().write(true).open(&path).expect("there");
        let modified = changed.metadata().and_then(|it| it.modified());
        let times = FileTimes::new().set_modified(modified.expect("a time"));
        for (tensor, byte) in [(31, 0), (12, 7), (12, 900)] {
            let at = tensors[tensor].info().bytes().start + byte;
            changed.seek(SeekFrom::Start(at)).expect("inside");
            changed.write_all(&[0xee]).expect("written");
        }
        changed.set_times(times).expect("set");
        let went = all(&weights, &device, &tensors, &interrupt);
        let failure = went.failure.expect("a difference");
        assert_eq!(failure.file(), Some(path.as_path()));
        assert_eq!(failure.tensor(), Some("t12"));
        let byte = LoadErrorKind::Mismatch {
            at: 7,
            found: 12,
            expected: 0xee,
        };
        assert_eq!(failure.kind(), &byte);
        assert!(went.tensors < TENSORS);
        fs::remove_file(&path).expect("there");
    }
}

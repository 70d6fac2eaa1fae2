//! Compares loaded tensors with their files, on several threads.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use pinlane::Device;
use pinlane::load::{LoadError, Tensor, Weights};

use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// Each thread needs about ten MiB of memory.
const THREADS: usize = 4;

pub(super) struct Verified {
    pub(super) tensors: usize,
    /// The first failure, in the order of the tensors.
    pub(super) failure: Option<LoadError>,
}

/// Compares every byte. Stops early on a failure or an interrupt.
pub(super) fn verify(
    weights: &Weights,
    device: &Device,
    tensors: &[Tensor],
    interrupt: &Interrupt,
) -> Verified {
    let bytes = |tensor: &Tensor| tensor.info().len_bytes();
    let progress = Progress::bytes("verifying".to_owned(), tensors.iter().map(bytes).sum());
    let (next, good, verified) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicU64::new(0));
    let first_failure: Mutex<Option<(usize, LoadError)>> = Mutex::new(None);
    let failure = || first_failure.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        // Tensors are taken in order, so those before a failure are all compared.
        while !interrupt.is_raised() && failure().is_none() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(tensor) = tensors.get(number) else {
                break;
            };
            match weights.verify(device, tensor) {
                Ok(()) => {
                    good.fetch_add(1, Ordering::Relaxed);
                    let before = verified.fetch_add(bytes(tensor), Ordering::Relaxed);
                    progress.set(before + bytes(tensor));
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
            // If a thread cannot be spawned, fewer do the work.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
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
    use serde_json::json;

    use super::*;
    use crate::scratch::Scratch;

    const TENSORS: usize = 40;
    const TENSOR_BYTES: usize = 1000;

    /// A file of tensors, each filled with its number.
    fn file() -> Vec<u8> {
        let entry = |number| {
            let offsets = [number * TENSOR_BYTES, (number + 1) * TENSOR_BYTES];
            let info = json!({"dtype": "U8", "shape": [TENSOR_BYTES], "data_offsets": offsets});
            (format!("t{number}"), info)
        };
        let header = (0..TENSORS).map(entry).collect::<serde_json::Map<_, _>>();
        let header = serde_json::Value::from(header).to_string();
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        file.extend((0..TENSORS).flat_map(|number| [number as u8; TENSOR_BYTES]));
        file
    }

    #[test]
    fn the_first_difference_is_reported_with_file_tensor_and_byte() {
        let scratch = Scratch::new();
        let path = scratch.folder().join("t.safetensors");
        fs::write(&path, file()).expect("written");
        let sim = Sim::new(Profile::builtin("pcie3-x16").expect("built in"));
        let device = Device::open(&sim, 0).expect("a device");
        let weights = Weights::open(&path).expect("a good file");
        let loaded = weights.load(&device, &LoadConfig::default());
        let mut tensors: Vec<_> = loaded.expect("loads").into_iter().collect();
        tensors.sort_by_key(|tensor| tensor.info().bytes().start);
        let interrupt = Interrupt::listen().expect("signals");

        let result = verify(&weights, &device, &tensors, &interrupt);
        assert_eq!((result.tensors, result.failure), (TENSORS, None));

        // Changes bytes of two tensors, but not the file's modification time.
        let mut changed = File::options().write(true).open(&path).expect("there");
        let modified = changed.metadata().and_then(|it| it.modified());
        let times = FileTimes::new().set_modified(modified.expect("a time"));
        for (tensor, byte) in [(31, 0), (12, 7), (12, 900)] {
            let at = tensors[tensor].info().bytes().start + byte;
            changed.seek(SeekFrom::Start(at)).expect("inside");
            changed.write_all(&[0xee]).expect("written");
        }
        changed.set_times(times).expect("set");
        let result = verify(&weights, &device, &tensors, &interrupt);
        let failure = result.failure.expect("a difference");
        assert_eq!(failure.file(), Some(path.as_path()));
        assert_eq!(failure.tensor(), Some("t12"));
        let byte = LoadErrorKind::Mismatch {
            at: 7,
            found: 12,
            expected: 0xee,
        };
        assert_eq!(failure.kind(), &byte);
        assert!(result.tensors < TENSORS);
    }
}

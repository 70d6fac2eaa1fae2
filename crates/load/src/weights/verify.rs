//! Reads tensors back and compares them with their files.

use std::os::unix::fs::FileExt;

use pinlane_kernels::convert;

use super::{Tensor, Weights};
use crate::{Fault, LoadError};
use pinlane_core::Device;

/// Elements that are compared at once are at most so many bytes, in the file or on the device.
const BYTES: u64 = 32 << 20;

impl Weights {
    /// Read a tensor back, and compare every byte with its file, converted as it was.
    ///
    /// # Errors
    /// [`Fault::NotTheSame`] with the first byte that differs, [`Fault::OtherCatalog`] for a tensor of
    /// other weights; errors of file and device.
    pub fn verify(&self, device: &Device, tensor: &Tensor) -> Result<(), LoadError> {
        let info = tensor.info();
        if !self.catalog.holds(info) {
            return Err(LoadError::from(Fault::OtherCatalog).with_tensor(info.name()));
        }
        let file_info = &self.catalog.files()[info.file()];
        let at_tensor = |error: LoadError| error.of(file_info.path()).with_tensor(info.name());
        let failed = |fault: Fault| at_tensor(fault.into());
        let file = file_info.open()?;
        let stream = device
            .stream()
            .map_err(|error| failed(Fault::device(error)))?;
        let kinds = match (info.dtype().float_kind(), tensor.dtype().float_kind()) {
            (Some(from), Some(to)) if from != to => Some((from, to)),
            _ => None,
        };
        let (from_bytes, to_bytes) = kinds.map_or((1, 1), |(from, to)| {
            (from.bytes() as u64, to.bytes() as u64)
        });
        let elements_at_once = BYTES / from_bytes.max(to_bytes);
        let elements = info.len_bytes() / from_bytes;
        let (mut stored, mut expected, mut found) = (Vec::new(), Vec::new(), Vec::new());
        let mut first = 0;
        while first < elements {
            let count = elements_at_once.min(elements - first);
            stored.resize((count * from_bytes) as usize, 0);
            file.read_exact_at(&mut stored, info.bytes().start + first * from_bytes)
                .map_err(|error| failed(Fault::io("read", &error)))?;
            found.resize((count * to_bytes) as usize, 0);
            let start = (first * to_bytes) as usize;
            let on_device = tensor.bytes().range(start..start + found.len());
            stream
                .copy_to_host(on_device, &mut found)
                .map_err(|error| failed(Fault::device(error)))?;
            let expected = match kinds {
                None => &stored,
                Some((from, to)) => {
                    expected.resize(found.len(), 0);
                    convert::floats(from, to, &stored, &mut expected);
                    &expected
                }
            };
            let differs = found.iter().zip(expected).position(|(a, b)| a != b);
            if let Some(at) = differs {
                return Err(failed(Fault::NotTheSame {
                    at: (start + at) as u64,
                    found: found[at],
                    expected: expected[at],
                }));
            }
            first += count;
        }
        file_info.check(&file)
    }
}

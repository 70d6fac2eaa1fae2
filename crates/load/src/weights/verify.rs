//! Reads tensors back from the device and compares them with their files.

use std::os::unix::fs::FileExt;

use pinlane_kernels::convert;

use super::{Tensor, Weights};
use crate::dtype::element_bytes;
use crate::{LoadError, LoadErrorKind};
use pinlane_core::Device;

/// Bytes compared at once, in the file or on the device.
const CHUNK_BYTES: u64 = 32 << 20;

impl Weights {
    /// Reads a tensor back and compares every byte with its file, after the same conversion.
    ///
    /// # Errors
    /// [`LoadErrorKind::Mismatch`] for the first different byte, [`LoadErrorKind::OtherCatalog`] for a
    /// tensor of other weights; errors of the file and the device.
    pub fn verify(&self, device: &Device, tensor: &Tensor) -> Result<(), LoadError> {
        let info = tensor.info();
        if !self.catalog.contains(info) {
            return Err(LoadError::from(LoadErrorKind::OtherCatalog).with_tensor(info.name()));
        }
        let file_info = &self.catalog.files()[info.file()];
        let file = file_info.open()?;
        let compare = || -> Result<(), LoadErrorKind> {
            let stream = device.stream()?;
            let kinds = info.dtype().conversion_to(tensor.dtype());
            let (from_bytes, to_bytes) = element_bytes(kinds);
            let elements_at_once = CHUNK_BYTES / from_bytes.max(to_bytes);
            let elements = info.len_bytes() / from_bytes;
            let (mut stored, mut converted, mut found) = (Vec::new(), Vec::new(), Vec::new());
            for first in (0..elements).step_by(elements_at_once as usize) {
                let count = elements_at_once.min(elements - first);
                stored.resize((count * from_bytes) as usize, 0);
                file.read_exact_at(&mut stored, info.bytes().start + first * from_bytes)
                    .map_err(|error| LoadErrorKind::io("read", &error))?;
                found.resize((count * to_bytes) as usize, 0);
                let start = (first * to_bytes) as usize;
                let on_device = tensor.bytes().range(start..start + found.len());
                stream.copy_to_host(on_device, &mut found)?;
                let expected = match kinds {
                    None => &stored,
                    Some((from, to)) => {
                        converted.resize(found.len(), 0);
                        convert::floats(from, to, &stored, &mut converted);
                        &converted
                    }
                };
                if let Some(at) = found.iter().zip(expected).position(|(a, b)| a != b) {
                    return Err(LoadErrorKind::Mismatch {
                        at: (start + at) as u64,
                        found: found[at],
                        expected: expected[at],
                    });
                }
            }
            Ok(())
        };
        compare().map_err(|kind| {
            let error = LoadError::from(kind).with_file(file_info.path());
            error.with_tensor(info.name())
        })?;
        file_info.check(&file)
    }
}

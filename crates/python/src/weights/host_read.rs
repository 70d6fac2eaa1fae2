//! Tensors in host memory.

use std::ptr;
use std::slice;

use pinlane::load::{Dtype as FileDtype, LoadConfig, TensorInfo, Weights};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::array_type::{ArrayType, of_tensor};
use crate::errors::OrRaise;
use crate::host_array::HostArray;

/// Bytes to read between two looks for signals.
const BETWEEN_CHECKS_BYTES: usize = 512 << 20;

/// The memory of arrays.
///
/// # Safety
/// At every address is an array of its type, which nobody else uses while the result is in use.
pub(super) unsafe fn targets<'a>(addresses: &[usize], types: &[ArrayType]) -> Vec<&'a mut [u8]> {
    let target = |(&address, array): (&usize, &ArrayType)| match array.bytes {
        0 => &mut [][..],
        bytes => {
            let start = ptr::with_exposed_provenance_mut(address);
            // SAFETY: the caller's promise.
            unsafe { slice::from_raw_parts_mut(start, bytes) }
        }
    };
    addresses.iter().zip(types).map(target).collect()
}

/// Existing arrays for the tensors, if they have the right types.
pub(super) fn checked(
    tensors: &[TensorInfo],
    types: &[ArrayType],
    out: &[Bound<'_, PyAny>],
) -> PyResult<Vec<HostArray>> {
    let check = |((tensor, array), out): ((&TensorInfo, &ArrayType), &Bound<'_, PyAny>)| {
        let found = HostArray::target(out, "out").and_then(|found| {
            let checked = array.check(&found.shape, found.dtype);
            checked.map_err(PyValueError::new_err)?;
            Ok(found)
        });
        found.map_err(|error| of_tensor(out.py(), tensor.name(), &error))
    };
    let arrays: Vec<HostArray> = tensors
        .iter()
        .zip(types)
        .zip(out)
        .map(check)
        .collect::<PyResult<_>>()?;
    let mut ranges: Vec<(usize, usize, usize)> = arrays
        .iter()
        .enumerate()
        .map(|(number, array)| (array.start().addr(), array.bytes(), number))
        .filter(|&(_, bytes, _)| bytes > 0)
        .collect();
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        let [(start, bytes, number), (next, _, other)] = [pair[0], pair[1]];
        if start + bytes > next {
            return Err(PyValueError::new_err(format!(
                "out has the same memory for {:?} and {:?}",
                tensors[number].name(),
                tensors[other].name()
            )));
        }
    }
    Ok(arrays)
}

/// Reads the selected tensors into the targets. Ctrl-C ends it.
pub(super) fn read(
    py: Python<'_>,
    weights: &Weights,
    convert: Option<FileDtype>,
    mut targets: Vec<&mut [u8]>,
) -> PyResult<()> {
    let mut config = LoadConfig::default();
    config.convert = convert;
    let (mut tensors, mut targets) = (weights.tensors(), &mut targets[..]);
    while !tensors.is_empty() {
        let mut bytes = 0;
        let mut count = 0;
        while count < targets.len() && bytes < BETWEEN_CHECKS_BYTES {
            bytes += targets[count].len();
            count += 1;
        }
        let (now, later) = std::mem::take(&mut targets).split_at_mut(count);
        let part = weights.clone().only(tensors[..count].to_vec());
        py.detach(|| part.read_into(&config, now)).or_raise()?;
        py.check_signals()?;
        (tensors, targets) = (&tensors[count..], later);
    }
    Ok(())
}

//! `--list`: the tensors in files.

use std::collections::BTreeSet;

use pinlane::load::{Dtype, FileInfo, TensorInfo, Weights};
use pinlane_report::{LoadList, LoadListConverted, LoadListTensor};

use super::parse::FLOATS;

/// The tensors, and what floating-point types become on the way.
pub(super) fn list(weights: &Weights, to: Option<Dtype>) -> LoadList {
    let files = weights.catalog().files();
    let tensors = weights.tensors().iter().map(|tensor| LoadListTensor {
        name: tensor.name().to_owned(),
        dtype: tensor.dtype().to_string(),
        shape: tensor.shape().to_vec(),
        bytes: tensor.len_bytes(),
        converted: converted(tensor, to),
        file: files[tensor.file()].path().display().to_string(),
    });
    let unlisted: usize = files.iter().map(FileInfo::unlisted).sum();
    LoadList::new(file_count(weights), unlisted as u64, tensors.collect())
}

fn converted(tensor: &TensorInfo, to: Option<Dtype>) -> Option<LoadListConverted> {
    let from = tensor.dtype();
    let to = to.filter(|to| *to != from && FLOATS.contains(&from))?;
    Some(LoadListConverted {
        to: to.to_string(),
        bytes: (tensor.len_bytes() / (from.bits() / 8)).saturating_mul(to.bits() / 8),
    })
}

/// The number of files that the selected tensors are in.
pub(super) fn file_count(weights: &Weights) -> u64 {
    let files: BTreeSet<_> = weights.tensors().iter().map(TensorInfo::file).collect();
    files.len() as u64
}

//! What is in files.

use std::collections::BTreeSet;

use pinlane::load::{FileInfo, TensorInfo, Weights};
use pinlane_report::{LoadList, LoadListTensor};

pub(super) fn of(weights: &Weights) -> LoadList {
    let files = weights.catalog().files();
    let tensors = weights.tensors().iter().map(|tensor| LoadListTensor {
        name: tensor.name().to_owned(),
        dtype: tensor.dtype().to_string(),
        shape: tensor.shape().to_vec(),
        bytes: tensor.len_bytes(),
        file: files[tensor.file()].path().display().to_string(),
    });
    let unlisted: usize = files.iter().map(FileInfo::unlisted).sum();
    LoadList::new(files_of(weights), unlisted as u64, tensors.collect())
}

/// How many files the wanted tensors are in.
pub(super) fn files_of(weights: &Weights) -> u64 {
    let files: BTreeSet<_> = weights.tensors().iter().map(TensorInfo::file).collect();
    files.len() as u64
}

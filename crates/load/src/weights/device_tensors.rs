//! Tensors on the device.

use std::ops::Index;
use std::sync::Arc;
use std::{slice, vec};

use bytemuck::Pod;

use super::LoadStats;
use crate::{Dtype, TensorInfo};
use pinlane_core::memory::{DeviceBuf, DeviceSlice};

/// A tensor on the device. Several share one device allocation, which is freed with the last of them.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub(super) info: TensorInfo,
    pub(super) dtype: Dtype,
    pub(super) memory: Arc<DeviceBuf<u8>>,
    pub(super) start: usize,
    pub(super) len: usize,
}

impl Tensor {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.info.name()
    }

    /// Type of the elements on the device.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The dimensions, slowest first; empty for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        self.info.shape()
    }

    /// The tensor in its file.
    #[must_use]
    pub fn info(&self) -> &TensorInfo {
        &self.info
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> DeviceSlice<'_, u8> {
        self.memory.range(self.start..self.start + self.len)
    }

    /// The elements, if `T` has their size.
    #[must_use]
    pub fn elements<T: Pod>(&self) -> Option<DeviceSlice<'_, T>> {
        let fits = self.dtype.bits() == 8 * size_of::<T>() as u64;
        fits.then(|| self.bytes().cast())
    }
}

/// The tensors of a load, sorted by name. A lookup finds any one of several with the same name (rows).
#[derive(Clone, Debug)]
pub struct Tensors {
    by_name: Vec<Tensor>,
    stats: LoadStats,
}

impl Tensors {
    pub(super) fn new(mut by_name: Vec<Tensor>, stats: LoadStats) -> Self {
        by_name.sort_by(|a, b| a.name().cmp(b.name()));
        Self { by_name, stats }
    }

    /// The tensor with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        let tensors = &self.by_name;
        let found = tensors.binary_search_by(|tensor| tensor.name().cmp(name));
        found.ok().map(|at| &tensors[at])
    }

    /// Number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are no tensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Iterates over the tensors, sorted by name.
    pub fn iter(&self) -> slice::Iter<'_, Tensor> {
        self.by_name.iter()
    }

    /// Statistics of the load.
    #[must_use]
    pub fn stats(&self) -> &LoadStats {
        &self.stats
    }
}

impl Index<&str> for Tensors {
    type Output = Tensor;

    fn index(&self, name: &str) -> &Tensor {
        self.get(name)
            .unwrap_or_else(|| panic!("no tensor {name:?} was loaded"))
    }
}

impl IntoIterator for Tensors {
    type Item = Tensor;
    type IntoIter = vec::IntoIter<Tensor>;

    fn into_iter(self) -> Self::IntoIter {
        self.by_name.into_iter()
    }
}

impl<'a> IntoIterator for &'a Tensors {
    type Item = &'a Tensor;
    type IntoIter = slice::Iter<'a, Tensor>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

//! Tensors on the device.

use std::fmt;
use std::ops::Index;
use std::sync::Arc;

use bytemuck::Pod;

use super::LoadStats;
use crate::{Dtype, TensorInfo};
use pinlane_core::memory::{DeviceBuf, DeviceSlice};

/// A tensor on the device. Several share a device allocation, which is freed with the last of them.
#[derive(Clone)]
pub struct Tensor {
    info: TensorInfo,
    dtype: Dtype,
    memory: Arc<DeviceBuf<u8>>,
    start: usize,
    bytes: usize,
}

impl Tensor {
    pub(super) fn new(
        info: &TensorInfo,
        dtype: Dtype,
        memory: &Arc<DeviceBuf<u8>>,
        start: usize,
        bytes: usize,
    ) -> Self {
        Self {
            info: info.clone(),
            dtype,
            memory: Arc::clone(memory),
            start,
            bytes,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.info.name()
    }

    /// Type of its elements, on the device.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Its dimensions, the slowest first; none for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        self.info.shape()
    }

    /// What it was in its file.
    #[must_use]
    pub fn info(&self) -> &TensorInfo {
        &self.info
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> DeviceSlice<'_, u8> {
        self.memory.range(self.start..self.start + self.bytes)
    }

    /// Its elements, where `T` is as large as one of them.
    #[must_use]
    pub fn elements<T: Pod>(&self) -> Option<DeviceSlice<'_, T>> {
        let fits = self.dtype.bits() == 8 * size_of::<T>() as u64;
        fits.then(|| self.bytes().cast())
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tensor")
            .field("name", &self.name())
            .field("dtype", &self.dtype)
            .field("shape", &self.shape())
            .finish_non_exhaustive()
    }
}

/// All tensors of a load, by name. Rows of the same tensor have the same name: of those any one is
/// found by it.
#[derive(Clone, Debug)]
pub struct Tensors {
    by_name: Vec<Tensor>,
    stats: LoadStats,
}

impl Tensors {
    pub(super) fn new(mut tensors: Vec<Tensor>, stats: LoadStats) -> Self {
        tensors.sort_by(|a, b| a.name().cmp(b.name()));
        Self {
            by_name: tensors,
            stats,
        }
    }

    /// The tensor of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        let found = self
            .by_name
            .binary_search_by(|tensor| tensor.name().cmp(name));
        found.ok().map(|at| &self.by_name[at])
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Tensor> {
        self.by_name.iter()
    }

    /// What the load did.
    #[must_use]
    pub fn stats(&self) -> &LoadStats {
        &self.stats
    }
}

impl Index<&str> for Tensors {
    type Output = Tensor;

    fn index(&self, name: &str) -> &Tensor {
        match self.get(name) {
            Some(tensor) => tensor,
            None => panic!("no tensor {name:?} was loaded"),
        }
    }
}

impl IntoIterator for Tensors {
    type Item = Tensor;
    type IntoIter = std::vec::IntoIter<Tensor>;

    fn into_iter(self) -> Self::IntoIter {
        self.by_name.into_iter()
    }
}

//! Weights in files: their names, and arrays of them on devices and hosts.

mod array_type;
mod device_load;
mod given_device_memory;
mod host_read;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use pinlane::load::{Dtype as FileDtype, LoadError, Selection, TensorInfo, Weights};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::copies::tell_torch;
use crate::dtype::Dtype;
use crate::errors::OrRaise;
use array_type::ArrayType;
pub(crate) use device_load::DeviceLoad;

/// Files, folders or indexes with tensors. Only headers are read.
#[pyclass(frozen, module = "pinlane")]
pub(crate) struct TensorFiles {
    /// With nothing selected: cheap to clone.
    weights: Weights,
    paths: Vec<PathBuf>,
}

impl TensorFiles {
    /// The tensors with these names, or the same rows of each.
    fn only(&self, names: &[String], rows: Option<(u64, u64)>) -> PyResult<Weights> {
        let tensor = |name: &String| {
            let tensor = self.tensor(name)?;
            match rows {
                None => Ok(tensor.clone()),
                Some((start, end)) => tensor.rows(start..end).or_raise(),
            }
        };
        let tensors = names.iter().map(tensor).collect::<PyResult<Vec<_>>>()?;
        Ok(self.weights.clone().only(tensors))
    }

    fn tensor(&self, name: &str) -> PyResult<&TensorInfo> {
        let found = self.weights.catalog().tensor(name);
        found.map_err(|_| {
            let paths: Vec<_> = self
                .paths
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            PyKeyError::new_err(format!("{} has no tensor {name:?}", paths.join(", ")))
        })
    }
}

#[pymethods]
impl TensorFiles {
    #[new]
    fn open(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Self> {
        // The program may go to another folder before it reads.
        let absolute: io::Result<Vec<PathBuf>> = paths.iter().map(std::path::absolute).collect();
        let absolute = absolute?;
        let weights = py.detach(|| Weights::open_all(&absolute)).or_raise()?;
        let weights = weights.only(Vec::new());
        Ok(Self { weights, paths })
    }

    /// Names of all tensors: file by file, by offset.
    fn names(&self) -> Vec<&str> {
        let tensors = self.weights.catalog().tensors();
        tensors.iter().map(TensorInfo::name).collect()
    }

    /// Names of the tensors that have one of these names or match one of these patterns.
    fn select(&self, patterns: Vec<String>) -> PyResult<Vec<String>> {
        if patterns.is_empty() {
            return Ok(Vec::new());
        }
        let catalog = self.weights.catalog();
        let select = || -> Result<_, LoadError> {
            let mut selection = Selection::new();
            for pattern in patterns {
                // A name may look like a pattern.
                let is_pattern =
                    pattern.contains(['*', '?', '[']) && catalog.tensor(&pattern).is_err();
                selection = match is_pattern {
                    true => selection.glob(pattern)?,
                    false => selection.name(pattern),
                };
            }
            catalog.select(&selection)
        };
        let selected = select().or_raise()?;
        Ok(selected
            .iter()
            .map(|tensor| tensor.name().to_owned())
            .collect())
    }

    /// Element type, as the file spells it, and shape of a tensor.
    fn describe(&self, name: &str) -> PyResult<(&'static str, Vec<u64>)> {
        let tensor = self.tensor(name)?;
        Ok((tensor.dtype().name(), tensor.shape().to_vec()))
    }

    /// Metadata of all files.
    fn metadata(&self) -> BTreeMap<String, String> {
        let files = self.weights.catalog().files();
        files
            .iter()
            .flat_map(|file| file.metadata().clone())
            .collect()
    }

    /// Shape and element type of each tensor as an array.
    #[pyo3(signature = (names, *, dtype=None, rows=None))]
    fn array_types<'py>(
        &self,
        py: Python<'py>,
        names: Vec<String>,
        dtype: Option<&Bound<'py, PyAny>>,
        rows: Option<(u64, u64)>,
    ) -> PyResult<Vec<(Bound<'py, PyTuple>, &'static str)>> {
        let weights = self.only(&names, rows)?;
        let types = ArrayType::of_all(weights.tensors(), conversion(dtype)?)?;
        types.iter().map(|array| array.for_python(py)).collect()
    }

    /// Reads tensors into host memory at these addresses. The caller keeps arrays of the tensors' types there.
    #[pyo3(signature = (names, addresses, *, dtype=None, rows=None))]
    fn read(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        addresses: Vec<usize>,
        dtype: Option<&Bound<'_, PyAny>>,
        rows: Option<(u64, u64)>,
    ) -> PyResult<()> {
        let (weights, convert) = (self.only(&names, rows)?, conversion(dtype)?);
        let types = ArrayType::of_all(weights.tensors(), convert)?;
        if addresses.len() != types.len() {
            return Err(PyValueError::new_err("one address per tensor is needed"));
        }
        // SAFETY: the caller, a function of this package, has just allocated arrays of these types, which nobody else knows.
        let targets = unsafe { host_read::targets(&addresses, &types) };
        host_read::read(py, &weights, convert, targets)
    }

    /// Reads tensors into existing arrays in host memory.
    #[pyo3(signature = (names, out, *, dtype=None))]
    fn read_out(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        out: Vec<Bound<'_, PyAny>>,
        dtype: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (weights, convert) = (self.only(&names, None)?, conversion(dtype)?);
        let types = ArrayType::of_all(weights.tensors(), convert)?;
        let arrays = host_read::checked(weights.tensors(), &types, &out)?;
        // SAFETY: that no other thread uses the arrays during the load is for the user to see to, as with NumPy itself.
        let targets = arrays.iter().map(|array| unsafe { array.as_mut_slice() });
        let read = host_read::read(py, &weights, convert, targets.collect());
        // Also after an error: some have been written.
        out.iter().try_for_each(tell_torch)?;
        read
    }

    /// Starts to load tensors to a device: into arrays of our own; into those that `allocate` returns, on `stream`; or
    /// into existing ones.
    ///
    /// `allocate` gets a list of (shape, dtype), and returns a list of arrays and a list of their addresses. With
    /// `device_bytes`, no more memory than that and the largest tensor is held ahead of who takes the arrays.
    #[pyo3(signature = (names, device, *, allocate=None, stream=None, out=None, dtype=None, rows=None, device_bytes=None))]
    #[allow(clippy::too_many_arguments)] // keywords in Python
    fn load<'py>(
        &self,
        py: Python<'py>,
        names: Vec<String>,
        device: &Bound<'py, PyAny>,
        allocate: Option<Py<PyAny>>,
        stream: Option<&Bound<'py, PyAny>>,
        out: Option<Vec<Bound<'py, PyAny>>>,
        dtype: Option<&Bound<'py, PyAny>>,
        rows: Option<(u64, u64)>,
        device_bytes: Option<u64>,
    ) -> PyResult<DeviceLoad> {
        let (weights, convert) = (self.only(&names, rows)?, conversion(dtype)?);
        let device = crate::device::Device::of_any(py, Some(device))?;
        let load = device_load::LoadRequest {
            types: ArrayType::of_all(weights.tensors(), convert)?,
            stream: stream
                .map(|stream| crate::stream::of_any(&device, stream))
                .transpose()?,
            weights,
            convert,
            device,
            device_bytes,
        };
        match (allocate, out) {
            (_, Some(out)) => {
                out.iter().try_for_each(tell_torch)?;
                load.into_existing(py, &out)
            }
            (Some(allocate), None) => load.into_allocated(py, allocate),
            (None, None) => load.into_own(py),
        }
    }
}

/// The type that floating-point tensors are converted to.
fn conversion(dtype: Option<&Bound<'_, PyAny>>) -> PyResult<Option<FileDtype>> {
    let Some(dtype) = dtype else {
        return Ok(None);
    };
    let dtype = Dtype::of_any(dtype)?;
    match dtype
        .in_files()
        .filter(|dtype| array_type::is_convertible(*dtype))
    {
        Some(dtype) => Ok(Some(dtype)),
        None => Err(PyValueError::new_err(format!(
            "tensors cannot be converted to {dtype}; choose float16, bfloat16, float32 or float64"
        ))),
    }
}

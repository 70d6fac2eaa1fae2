//! Datasets for the loader: arrays in memory and in files, tar archives, and Python objects.

use std::path::PathBuf;
use std::sync::Arc;

use pinlane::load::dataset::{Arrays, Tar, TarConfig};
use pinlane::load::{self, Field, FieldShape, SampleError, SampleMut};
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::dtype::{Dtype, shape_text};
use crate::errors::OrRaise;
use crate::host_array::HostArray;

/// Samples that a loader reads. Made by its functions, from what `pinlane.DataLoader` is given.
#[pyclass(frozen, module = "pinlane._native", name = "Dataset")]
pub(crate) struct NativeDataset {
    pub(crate) inner: Arc<dyn load::Dataset>,
}

#[pymethods]
impl NativeDataset {
    /// Rows of arrays in memory, which stay where they are: pairs of a name and an array.
    #[staticmethod]
    fn of_arrays(py: Python<'_>, arrays: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let mut samples = None;
        let mut columns = Vec::new();
        for (name, array) in arrays {
            let array = HostArray::source(&array)?.kept(array.py())?;
            let Some((&rows, row)) = array.shape.split_first() else {
                let message = format!("array {name:?} has no axes, so it has no samples");
                return Err(PyValueError::new_err(message));
            };
            let expected = *samples.get_or_insert(rows);
            if rows != expected {
                return Err(PyValueError::new_err(format!(
                    "array {name:?} has {rows} samples, the first array {expected}"
                )));
            }
            let field = Field::fixed(name, file_dtype(array.dtype)?, row.to_vec());
            columns.push((field, ArrayBytes(array)));
        }
        let samples = samples.unwrap_or(0);
        let arrays = py.detach(|| Arrays::from_memory(samples, columns));
        Ok(Self::new(arrays.or_raise()?))
    }

    /// Rows of the arrays in npy and safetensors files.
    #[staticmethod]
    fn of_files(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Self> {
        let open = || {
            let mut all: Option<Arrays> = None;
            for path in paths {
                let arrays = Arrays::open(path)?;
                all = Some(match all {
                    Some(all) => all.and(arrays)?,
                    None => arrays,
                });
            }
            Ok::<_, load::LoadError>(all)
        };
        let arrays = py.detach(open).or_raise()?;
        arrays
            .map(Self::new)
            .ok_or_else(|| PyValueError::new_err("no files are given"))
    }

    /// Files in tar archives: pairs of an extension and a field, as `of_python` takes it.
    #[staticmethod]
    fn of_tar(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        fields: Vec<(String, Bound<'_, PyTuple>)>,
    ) -> PyResult<Self> {
        let mut config = TarConfig::new();
        for (extension, described) in fields {
            config = config.field(extension, field(&described)?);
        }
        let tar = py.detach(|| Tar::open(paths, config)).or_raise()?;
        Ok(Self::new(tar))
    }

    /// `len` samples of a Python function, which takes an index and returns a list with an array for each field. A field
    /// is a name, an element type and a shape, or instead of the shape a number: the most elements of a sample.
    #[staticmethod]
    fn of_python(len: usize, fields: Vec<Bound<'_, PyTuple>>, read: Py<PyAny>) -> PyResult<Self> {
        let fields = fields.iter().map(field).collect::<PyResult<_>>()?;
        Ok(Self::new(PythonDataset { len, fields, read }))
    }

    /// Names, element types and shapes of the fields.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for field in self.inner.fields() {
            let dtype = Dtype::of_field(field.dtype())?.name();
            match field.shape() {
                FieldShape::Fixed(shape) => {
                    list.append((field.name(), dtype, PyTuple::new(py, shape)?))?;
                }
                FieldShape::Variable { at_most } => {
                    list.append((field.name(), dtype, *at_most))?;
                }
            }
        }
        Ok(list)
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }
}

impl NativeDataset {
    fn new(dataset: impl load::Dataset) -> Self {
        Self {
            inner: Arc::new(dataset),
        }
    }
}

fn field(described: &Bound<'_, PyTuple>) -> PyResult<Field> {
    let (name, dtype, shape): (String, Bound<'_, PyAny>, Bound<'_, PyAny>) = described.extract()?;
    let dtype = file_dtype(Dtype::of_any(&dtype)?)?;
    Ok(match shape.extract::<usize>() {
        Ok(at_most) => Field::variable(name, dtype, at_most),
        Err(_) => Field::fixed(name, dtype, shape.extract::<Vec<usize>>()?),
    })
}

fn file_dtype(dtype: Dtype) -> PyResult<load::Dtype> {
    dtype
        .in_files()
        .ok_or_else(|| PyTypeError::new_err(format!("elements of {dtype} cannot be loaded")))
}

/// An array of Python's in place. Its owner keeps it.
struct ArrayBytes(HostArray);

impl AsRef<[u8]> for ArrayBytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: that nobody writes to an array while a loader reads it is for the user to see to, as with every
        // loader.
        unsafe { self.0.as_slice() }
    }
}

/// Samples that Python code computes.
struct PythonDataset {
    len: usize,
    fields: Vec<Field>,
    read: Py<PyAny>,
}

impl load::Dataset for PythonDataset {
    fn len(&self) -> usize {
        self.len
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<(), SampleError> {
        let read = Python::try_attach(|py| -> PyResult<()> {
            let values = self.read.bind(py).call1((index,))?;
            for (number, field) in self.fields.iter().enumerate() {
                write(&values.get_item(number)?, number, field, sample)?;
            }
            Ok(())
        });
        match read {
            Some(Ok(())) => Ok(()),
            // Ctrl-C and `sys.exit` are not the sample's fault.
            Some(Err(raised)) if !is_exception(&raised) => Err(SampleError::ending_epoch(raised)),
            Some(Err(raised)) => Err(raised.into()),
            None => Err(SampleError::ending_epoch("Python has ended")),
        }
    }
}

/// Whether this is what `except Exception` catches.
fn is_exception(raised: &PyErr) -> bool {
    Python::try_attach(|py| raised.is_instance_of::<PyException>(py)).unwrap_or(true)
}

/// Writes a value into its field.
fn write(
    value: &Bound<'_, PyAny>,
    number: usize,
    field: &Field,
    sample: &mut SampleMut<'_>,
) -> PyResult<()> {
    let array = HostArray::source(value)?;
    let expected = Dtype::of_field(field.dtype())?;
    let name = field.name();
    if array.dtype != expected {
        return Err(PyTypeError::new_err(format!(
            "field {name:?} has elements of {}, the first sample of {expected}",
            array.dtype
        )));
    }
    let target = match field.shape() {
        FieldShape::Fixed(shape) if *shape == array.shape => sample.fixed(number),
        FieldShape::Fixed(shape) => {
            return Err(PyValueError::new_err(format!(
                "field {name:?} has the shape {}, the first sample {}",
                shape_text(&array.shape),
                shape_text(shape)
            )));
        }
        FieldShape::Variable { .. } => {
            let room = sample.variable(number, array.bytes());
            room.map_err(|error| PyValueError::new_err(error.to_string()))?
        }
    };
    // SAFETY: as for `ArrayBytes`.
    let bytes = unsafe { array.as_slice() };
    value.py().detach(|| target.copy_from_slice(bytes));
    Ok(())
}

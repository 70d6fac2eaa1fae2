//! Arrays in host memory: NumPy, torch, buffers, and what speaks DLPack.

use std::ffi::CStr;
use std::slice;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyMemoryView, PyString};
use pyo3::{ffi, intern};

use crate::dlpack;
use crate::dtype::{self, Dtype};

/// A C-contiguous array in host memory, and what keeps it there. May be dropped on any thread.
pub(crate) struct HostArray {
    start: *mut u8,
    bytes: usize,
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    read_only: bool,
    /// Keeps the memory where it is.
    owner: HostOwner,
}

#[allow(dead_code)] // some are held, never read
enum HostOwner {
    /// Keeps its object from moving its memory.
    MemoryView(Py<PyAny>),
    Torch(Py<PyAny>),
    DlPack(dlpack::ImportedTensor),
}

// SAFETY: a pointer to memory that the owner keeps; the owners may be dropped on any thread.
unsafe impl Send for HostArray {}
// SAFETY: as above.
unsafe impl Sync for HostArray {}

/// What an object says of its memory, contiguous or not.
struct Found {
    start: *mut u8,
    dtype: Dtype,
    shape: Vec<usize>,
    is_contiguous: bool,
    read_only: bool,
    owner: HostOwner,
}

impl HostArray {
    /// The array that will be read; one that is not contiguous is copied first.
    pub(crate) fn source(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        refuse_masked(array)?;
        let found = find(array)?;
        if found.is_contiguous {
            return Self::new(found);
        }
        Self::new(find(&contiguous_copy(array)?)?)
    }

    /// The array that will be written. Errors call it `name`.
    pub(crate) fn target(array: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        refuse_masked(array)?;
        let found = find(array)?;
        if !found.is_contiguous {
            let message = format!("{name} must be contiguous in C order");
            return Err(PyValueError::new_err(message));
        }
        if found.read_only {
            return Err(PyValueError::new_err(format!("{name} is read-only")));
        }
        Self::new(found)
    }

    fn new(found: Found) -> PyResult<Self> {
        let bytes = found.dtype.bytes_of(&found.shape)?;
        if bytes > 0 && found.start.is_null() {
            return Err(PyValueError::new_err("the array has no memory"));
        }
        Ok(Self {
            // Arrays without bytes may be at address 0, where a slice may not be.
            start: if bytes == 0 {
                std::ptr::dangling_mut()
            } else {
                found.start
            },
            bytes,
            dtype: found.dtype,
            shape: found.shape,
            read_only: found.read_only,
            owner: found.owner,
        })
    }

    /// For use beyond the call that the user made. From then on the user may give a tensor other memory
    /// (`tensor.data = …`), so this keeps another tensor on the same memory.
    pub(crate) fn kept(mut self, py: Python<'_>) -> PyResult<Self> {
        if let HostOwner::Torch(tensor) = &self.owner {
            let same = tensor.call_method0(py, intern!(py, "detach"))?;
            self.owner = HostOwner::Torch(same);
        }
        Ok(self)
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// First byte. Not null, even if there are none.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// The bytes, to copy from.
    ///
    /// # Safety
    /// Nobody writes to them while the result is in use.
    pub(crate) unsafe fn as_slice(&self) -> &[u8] {
        // SAFETY: the owner keeps so many bytes there; the caller's promise.
        unsafe { slice::from_raw_parts(self.start, self.bytes) }
    }

    /// The bytes, to copy into.
    ///
    /// # Safety
    /// Nobody else uses them while the result is in use.
    #[allow(clippy::mut_from_ref)] // memory of Python's
    pub(crate) unsafe fn as_mut_slice(&self) -> &mut [u8] {
        assert!(!self.read_only, "made by `target`");
        // SAFETY: the owner keeps so many bytes there; the caller's promise.
        unsafe { slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

fn find(array: &Bound<'_, PyAny>) -> PyResult<Found> {
    let py = array.py();
    if is_torch_tensor(array)? {
        return of_torch(array);
    }
    let view = match PyMemoryView::from(array) {
        Ok(view) => return of_memory(array, view.as_any(), None),
        Err(error) => error,
    };
    refuse_on_device(array)?;
    if array.hasattr(intern!(py, "__array_interface__"))? {
        return of_array_interface(array);
    }
    if array.hasattr(intern!(py, "__dlpack__"))? {
        return of_dlpack(array);
    }
    if !view.is_instance_of::<PyTypeError>(py) {
        return Err(view);
    }
    Err(not_an_array(array))
}

fn not_an_array(object: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "a NumPy array, a CPU tensor, a buffer or an object with __dlpack__ is needed, not {}",
        class_name(object)
    ))
}

/// The name of an object's class, for errors.
pub(crate) fn class_name(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().name();
    name.map_or_else(|_| "this".to_owned(), |name| name.to_string())
}

/// Our own arrays have `__dlpack__` too, whose error on a simulated device names another cause.
fn refuse_on_device(array: &Bound<'_, PyAny>) -> PyResult<()> {
    let class = array.get_type();
    if class.name()? != "DeviceArray" || class.module()? != "pinlane" {
        return Ok(());
    }
    let device = array.getattr(intern!(array.py(), "device"))?;
    let message = format!("an array in host memory is needed, this one is on {device}");
    Err(PyTypeError::new_err(message))
}

/// The memory of an object with a memoryview. `dtype` is the element type if the memoryview has no name for it.
fn of_memory(
    object: &Bound<'_, PyAny>,
    view: &Bound<'_, PyAny>,
    dtype: Option<Dtype>,
) -> PyResult<Found> {
    if view
        .getattr(intern!(view.py(), "ndim"))?
        .extract::<usize>()?
        == 0
    {
        return without_axes(object, dtype);
    }
    // The memoryview keeps the memory; this only reads its description. Not that of the object itself, since some
    // describe themselves only partly.
    let buffer = PyUntypedBuffer::get(view)?;
    Ok(Found {
        start: buffer.buf_ptr().cast(),
        dtype: match dtype {
            Some(dtype) => dtype,
            None => match Dtype::of_format(buffer.format(), buffer.item_size())? {
                Some(dtype) => dtype,
                None => return Err(unknown_elements(object, buffer.format())),
            },
        },
        shape: buffer.shape().to_vec(),
        is_contiguous: buffer.is_c_contiguous(),
        read_only: buffer.readonly(),
        owner: HostOwner::MemoryView(view.clone().unbind()),
    })
}

/// The error for elements that have no type on a device. NumPy's name of the type says more than the buffer's format.
fn unknown_elements(object: &Bound<'_, PyAny>, format: &CStr) -> PyErr {
    match object.getattr(intern!(object.py(), "dtype")) {
        Ok(dtype) => dtype::unknown(&dtype.to_string()),
        Err(_) => dtype::unknown(&format!("{format:?} (as a buffer's format)")),
    }
}

/// An array without axes, which PyO3's buffers do not know: the same memory as one element along an axis.
fn without_axes(object: &Bound<'_, PyAny>, dtype: Option<Dtype>) -> PyResult<Found> {
    let element = as_numpy(object)?.call_method1("reshape", (1,))?;
    let view = PyMemoryView::from(&element)?;
    let mut found = of_memory(&element, view.as_any(), dtype)?;
    found.shape.clear();
    Ok(found)
}

/// A torch tensor. Torch's own calls are faster than DLPack, and know every element type.
fn of_torch(tensor: &Bound<'_, PyAny>) -> PyResult<Found> {
    let py = tensor.py();
    let device = tensor.getattr(intern!(py, "device"))?;
    let kind = device.getattr(intern!(py, "type"))?;
    let kind: &str = kind.extract()?;
    if kind != "cpu" {
        let message = format!("a tensor in host memory is needed, this one is on {kind}");
        return Err(PyTypeError::new_err(message));
    }
    let layout = tensor.getattr(intern!(py, "layout"))?.to_string();
    if layout != "torch.strided" {
        let message = format!("a dense tensor is needed, this one is {layout}");
        return Err(PyTypeError::new_err(message));
    }
    let is = |name: &Bound<'_, PyString>| tensor.call_method0(name)?.extract::<bool>();
    let dtype = Dtype::of_any(&tensor.getattr(intern!(py, "dtype"))?)?;
    let is_contiguous = is(intern!(py, "is_contiguous"))?
        && !is(intern!(py, "is_conj"))?
        && !is(intern!(py, "is_neg"))?;
    let address: usize = tensor.call_method0(intern!(py, "data_ptr"))?.extract()?;
    Ok(Found {
        start: std::ptr::with_exposed_provenance_mut(address),
        dtype,
        shape: tensor.getattr(intern!(py, "shape"))?.extract()?,
        is_contiguous,
        read_only: false,
        owner: HostOwner::Torch(tensor.clone().unbind()),
    })
}

/// A NumPy array whose element type a memoryview does not know, such as bfloat16 of ml_dtypes.
fn of_array_interface(array: &Bound<'_, PyAny>) -> PyResult<Found> {
    let py = array.py();
    let array = py.import("numpy")?.call_method1("asarray", (array,))?;
    let dtype = Dtype::of_numpy(&array.getattr("dtype")?)?;
    // The same memory as whole numbers of the same size.
    let numbers = array.call_method1("view", (format!("u{}", dtype.bytes()),))?;
    let view = PyMemoryView::from(&numbers)?;
    of_memory(&numbers, view.as_any(), Some(dtype))
}

fn of_dlpack(array: &Bound<'_, PyAny>) -> PyResult<Found> {
    let tensor = dlpack::ImportedTensor::of_host(array)?;
    Ok(Found {
        start: tensor.start(),
        dtype: tensor.dtype()?,
        shape: tensor.shape(),
        is_contiguous: tensor.is_contiguous(),
        read_only: tensor.is_read_only(),
        owner: HostOwner::DlPack(tensor),
    })
}

fn contiguous_copy<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    if is_torch_tensor(array)? {
        let detached = array.call_method0("detach")?;
        let resolved = detached
            .call_method0("resolve_conj")?
            .call_method0("resolve_neg")?;
        return resolved.call_method0("contiguous");
    }
    let array = as_numpy(array)?;
    py.import("numpy")?
        .call_method1("ascontiguousarray", (array,))
}

/// A NumPy array on the same memory.
pub(crate) fn as_numpy<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let numpy = py.import("numpy")?;
    if PyMemoryView::from(array).is_ok() || array.hasattr("__array_interface__")? {
        return numpy.call_method1("asarray", (array,));
    }
    refuse_on_device(array)?;
    if array.hasattr("__dlpack__")? {
        numpy.call_method1("from_dlpack", (array,))
    } else {
        Err(not_an_array(array))
    }
}

/// The mask of an array would be lost.
fn refuse_masked(array: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = array.py();
    let Some(masked) = imported(py, intern!(py, "numpy.ma"))? else {
        return Ok(());
    };
    if let Some(class) = masked.getattr_opt(intern!(py, "MaskedArray"))?
        && array.is_instance(&class)?
    {
        let message = "a masked array cannot be copied; fill it first: array.filled(value)";
        return Err(PyTypeError::new_err(message));
    }
    Ok(())
}

/// First byte and number of bytes of the memory that an array spans, whatever its elements and strides.
pub(crate) fn span(array: &Bound<'_, PyAny>) -> PyResult<(*mut u8, usize)> {
    let py = array.py();
    let (low, high): (usize, usize) = if is_torch_tensor(array)? {
        let bounds = py.import("pinlane._torch")?.getattr("byte_bounds")?;
        bounds.call1((array,))?.extract()?
    } else {
        let bounds = py.import("pinlane._numpy")?.getattr("byte_bounds")?;
        bounds.call1((as_numpy(array)?,))?.extract()?
    };
    Ok((std::ptr::with_exposed_provenance_mut(low), high - low))
}

/// The memory of an array as bytes without axes, whatever its elements. It must be contiguous, in C or Fortran order.
pub(crate) fn flat_bytes<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let (module, array) = match is_torch_tensor(array)? {
        true => ("pinlane._torch", array.clone()),
        false => ("pinlane._numpy", as_numpy(array)?),
    };
    py.import(module)?.call_method1("flat_bytes", (array,))
}

/// Whether this is a tensor of torch, or of a class derived from it. Does not import torch.
pub(crate) fn is_torch_tensor(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static TENSOR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = object.py();
    let class = match TENSOR.get(py) {
        Some(class) => class.bind(py),
        None => {
            let Some(torch) = imported(py, intern!(py, "torch"))? else {
                return Ok(false);
            };
            // Another thread may still be importing it.
            let Some(class) = torch.getattr_opt(intern!(py, "Tensor"))? else {
                return Ok(false);
            };
            TENSOR.get_or_init(py, || class.unbind()).bind(py)
        }
    };
    object.is_instance(class)
}

/// A module, if the program has imported it.
pub(crate) fn imported<'py>(
    py: Python<'py>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    // SAFETY: called attached, with a string. Returns null without an exception if there is no such module.
    let module =
        unsafe { Bound::from_owned_ptr_or_opt(py, ffi::PyImport_GetModule(name.as_ptr())) };
    match (module, PyErr::take(py)) {
        (_, Some(error)) => Err(error),
        (module, None) => Ok(module),
    }
}

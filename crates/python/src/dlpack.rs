//! DLPack: memory from and for other libraries.
//!
//! The structures are those of DLPack 1.x (<https://dmlc.github.io/dlpack/latest/c_api.html>).

use std::ffi::{CStr, c_void};
use std::ptr::{self, NonNull};

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::dtype::Dtype;

const UNVERSIONED: &CStr = c"dltensor";
const UNVERSIONED_USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

/// The version that this code knows.
const VERSION: DlVersion = DlVersion { major: 1, minor: 1 };

/// DLPack's codes for places of memory.
pub(crate) const CPU: i32 = 1;
pub(crate) const CUDA: i32 = 2;
const CUDA_HOST: i32 = 3;

/// Flag of a versioned tensor.
const READ_ONLY: u64 = 1;

#[repr(C)]
#[derive(Clone, Copy)]
struct DlVersion {
    major: u32,
    minor: u32,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct DlManagedTensor {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

#[repr(C)]
struct DlManagedTensorVersioned {
    version: DlVersion,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: DlTensor,
}

/// What an exported tensor describes.
pub(crate) struct TensorDescription {
    pub(crate) data: u64,
    pub(crate) device: (i32, i32),
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
}

/// Memory of an exported tensor, with the arrays that its description points to.
struct Export {
    shape: Vec<i64>,
    strides: Vec<i64>,
    /// Dropped by the consumer, on any thread and without the interpreter.
    _owner: Box<dyn Send + Sync>,
}

impl TensorDescription {
    /// A capsule for a consumer. `owner` keeps the memory until the consumer is done with it.
    pub(crate) fn export<'py>(
        self,
        py: Python<'py>,
        owner: impl Send + Sync + 'static,
        max_version: Option<(u32, u32)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut export = Box::new(Export {
            shape: self.shape.iter().map(|&n| n as i64).collect(),
            strides: strides(&self.shape),
            _owner: Box::new(owner),
        });
        let (code, bits) = self.dtype.dlpack();
        let tensor = DlTensor {
            data: ptr::with_exposed_provenance_mut(self.data as usize),
            device_type: self.device.0,
            device_id: self.device.1,
            ndim: export.shape.len() as i32,
            code,
            bits,
            lanes: 1,
            shape: export.shape.as_mut_ptr(),
            strides: export.strides.as_mut_ptr(),
            byte_offset: 0,
        };
        let context = Box::into_raw(export).cast();
        match max_version {
            Some((major, _)) if major >= 1 => {
                let managed = Box::new(DlManagedTensorVersioned {
                    version: VERSION,
                    context,
                    deleter: Some(delete_versioned),
                    flags: 0,
                    tensor,
                });
                capsule(
                    py,
                    Box::into_raw(managed).cast(),
                    VERSIONED,
                    drop_versioned_capsule,
                )
            }
            _ => {
                let managed = Box::new(DlManagedTensor {
                    tensor,
                    context,
                    deleter: Some(delete_unversioned),
                });
                capsule(
                    py,
                    Box::into_raw(managed).cast(),
                    UNVERSIONED,
                    drop_unversioned_capsule,
                )
            }
        }
    }
}

/// Strides of a contiguous array, in elements.
fn strides(shape: &[usize]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1) as i64;
    }
    strides
}

fn capsule<'py>(
    py: Python<'py>,
    pointer: *mut c_void,
    name: &'static CStr,
    destructor: unsafe extern "C" fn(*mut ffi::PyObject),
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: a valid pointer, a static name, and a destructor that fits both.
    unsafe {
        let capsule = ffi::PyCapsule_New(pointer, name.as_ptr(), Some(destructor));
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

unsafe extern "C" fn delete_versioned(managed: *mut DlManagedTensorVersioned) {
    // SAFETY: made by `export`; the consumer deletes it once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Export>()));
    }
}

unsafe extern "C" fn delete_unversioned(managed: *mut DlManagedTensor) {
    // SAFETY: made by `export`; the consumer deletes it once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Export>()));
    }
}

/// A capsule that no consumer has taken still owns its tensor.
unsafe extern "C" fn drop_versioned_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls it with the capsule, attached. A consumer has renamed the one that it took.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

unsafe extern "C" fn drop_unversioned_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, UNVERSIONED.as_ptr()) == 1 {
            delete_unversioned(ffi::PyCapsule_GetPointer(capsule, UNVERSIONED.as_ptr()).cast());
        }
    }
}

/// A tensor of another library, until it is dropped.
pub(crate) struct ImportedTensor {
    managed: Managed,
}

enum Managed {
    Versioned(NonNull<DlManagedTensorVersioned>),
    Unversioned(NonNull<DlManagedTensor>),
}

// SAFETY: DLPack's deleters may be called on any thread.
unsafe impl Send for ImportedTensor {}
// SAFETY: shared access only reads the description.
unsafe impl Sync for ImportedTensor {}

impl ImportedTensor {
    /// The tensor of an object in host memory.
    pub(crate) fn of_host(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::import(object, None, |device| matches!(device, CPU | CUDA_HOST))
    }

    /// The tensor of an object in CUDA memory, ready for work on `stream` (its handle).
    pub(crate) fn of_cuda(object: &Bound<'_, PyAny>, stream: i64) -> PyResult<Self> {
        Self::import(object, Some(stream), |device| device == CUDA)
    }

    fn import(
        object: &Bound<'_, PyAny>,
        stream: Option<i64>,
        fits: impl Fn(i32) -> bool,
    ) -> PyResult<Self> {
        let py = object.py();
        let (place, _): (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
        if !fits(place) {
            let message = format!("the memory is elsewhere: DLPack device type {place}");
            return Err(PyTypeError::new_err(message));
        }
        let arguments = PyDict::new(py);
        arguments.set_item("stream", stream)?;
        arguments.set_item("max_version", (VERSION.major, VERSION.minor))?;
        let capsule = object
            .call_method("__dlpack__", (), Some(&arguments))
            .or_else(|error| {
                // Older libraries do not know the version.
                if !error.is_instance_of::<PyTypeError>(py) {
                    return Err(error);
                }
                arguments.del_item("max_version")?;
                object.call_method("__dlpack__", (), Some(&arguments))
            })?;
        let tensor = Self::take(&capsule.cast_into()?)?;
        if tensor.description().lanes != 1 {
            return Err(PyTypeError::new_err("vector elements are not supported"));
        }
        Ok(tensor)
    }

    /// Takes the tensor out of a capsule.
    fn take(capsule: &Bound<'_, PyCapsule>) -> PyResult<Self> {
        let object = capsule.as_ptr();
        // SAFETY: a capsule with this name has such a tensor; renaming it takes the ownership.
        let managed = unsafe {
            if ffi::PyCapsule_IsValid(object, VERSIONED.as_ptr()) == 1 {
                let managed = ffi::PyCapsule_GetPointer(object, VERSIONED.as_ptr());
                ffi::PyCapsule_SetName(object, VERSIONED_USED.as_ptr());
                NonNull::new(managed.cast()).map(Managed::Versioned)
            } else if ffi::PyCapsule_IsValid(object, UNVERSIONED.as_ptr()) == 1 {
                let managed = ffi::PyCapsule_GetPointer(object, UNVERSIONED.as_ptr());
                ffi::PyCapsule_SetName(object, UNVERSIONED_USED.as_ptr());
                NonNull::new(managed.cast()).map(Managed::Unversioned)
            } else {
                None
            }
        };
        let managed =
            managed.ok_or_else(|| PyBufferError::new_err("__dlpack__ returned no tensor"))?;
        if let Managed::Versioned(tensor) = &managed {
            // SAFETY: valid until it is deleted; the version comes first in every version.
            let major = unsafe { tensor.as_ref() }.version.major;
            if major != VERSION.major {
                let message = format!("version {major} of DLPack is not known");
                drop(Self { managed });
                return Err(PyBufferError::new_err(message));
            }
        }
        Ok(Self { managed })
    }

    fn description(&self) -> &DlTensor {
        // SAFETY: valid until it is deleted.
        unsafe {
            match &self.managed {
                Managed::Versioned(managed) => &managed.as_ref().tensor,
                Managed::Unversioned(managed) => &managed.as_ref().tensor,
            }
        }
    }

    pub(crate) fn is_read_only(&self) -> bool {
        match &self.managed {
            // SAFETY: valid until it is deleted.
            Managed::Versioned(managed) => unsafe { managed.as_ref().flags & READ_ONLY != 0 },
            Managed::Unversioned(_) => false,
        }
    }

    pub(crate) fn start(&self) -> *mut u8 {
        let tensor = self.description();
        tensor
            .data
            .cast::<u8>()
            .wrapping_add(tensor.byte_offset as usize)
    }

    pub(crate) fn dtype(&self) -> PyResult<Dtype> {
        let tensor = self.description();
        Dtype::of_dlpack(tensor.code, tensor.bits)
    }

    pub(crate) fn shape(&self) -> Vec<usize> {
        let lens = self.axes(self.description().shape);
        lens.iter()
            .map(|&len| usize::try_from(len).unwrap_or(0))
            .collect()
    }

    /// Whether it is contiguous in C order.
    pub(crate) fn is_contiguous(&self) -> bool {
        let tensor = self.description();
        let shape = self.shape();
        if tensor.strides.is_null() || shape.contains(&0) {
            return true;
        }
        let wanted = strides(&shape);
        let axes = self.axes(tensor.strides).iter().zip(wanted).zip(shape);
        // The stride of an axis of length one does not matter.
        axes.into_iter()
            .all(|((&stride, wanted), len)| stride == wanted || len == 1)
    }

    fn axes(&self, values: *mut i64) -> &[i64] {
        let count = usize::try_from(self.description().ndim).unwrap_or(0);
        if values.is_null() || count == 0 {
            return &[];
        }
        // SAFETY: the description has a value for each axis.
        unsafe { std::slice::from_raw_parts(values, count) }
    }
}

impl Drop for ImportedTensor {
    fn drop(&mut self) {
        // SAFETY: taken over from the producer, deleted once.
        unsafe {
            match &self.managed {
                Managed::Versioned(managed) => {
                    if let Some(delete) = managed.as_ref().deleter {
                        delete(managed.as_ptr());
                    }
                }
                Managed::Unversioned(managed) => {
                    if let Some(delete) = managed.as_ref().deleter {
                        delete(managed.as_ptr());
                    }
                }
            }
        }
    }
}

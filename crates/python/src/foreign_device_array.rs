//! Device memory of other libraries: torch, CuPy, JAX, Numba.

use std::sync::Arc;

use pinlane::{DeviceBuf, DevicePtr, DeviceSlice, DeviceSliceMut};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::device::Device;
use crate::device_array::{ArrayMemory, DeviceArray};
use crate::dlpack::ImportedTensor;
use crate::dtype::Dtype;
use crate::errors::OrRaise;
use crate::fork;
use crate::host_array::is_torch_tensor;
use crate::stream;

/// A C-contiguous array on a device, ours or another library's, for one copy.
pub(crate) struct DeviceView {
    pub(crate) device: Device,
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    read_only: bool,
    memory: ViewMemory,
    /// The stream that its library uses now.
    current_stream: Option<pinlane::Stream>,
    /// Its library cannot be made to wait for our work, so the host must.
    pub(crate) must_wait: bool,
}

enum ViewMemory {
    Own(Arc<ArrayMemory>),
    Foreign {
        buffer: DeviceBuf<u8>,
        _tensor: Option<ImportedTensor>,
    },
}

/// What another library says of its array.
struct Foreign {
    device: Device,
    address: u64,
    dtype: Dtype,
    shape: Vec<usize>,
    read_only: bool,
    current_stream: Option<pinlane::Stream>,
    tensor: Option<ImportedTensor>,
}

impl DeviceView {
    /// The array, if it is one on a device.
    pub(crate) fn of_any(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = object.py();
        if let Ok(array) = object.cast::<DeviceArray>() {
            fork::refuse_child()?;
            let array = array.get();
            return Ok(Some(Self {
                device: array.device.clone(),
                dtype: array.dtype,
                shape: array.shape.clone(),
                read_only: false,
                memory: ViewMemory::Own(Arc::clone(&array.memory)),
                current_stream: None,
                must_wait: false,
            }));
        }
        let foreign = if is_torch_tensor(object)? {
            let on_gpu = object.getattr(intern!(py, "is_cuda"))?.extract()?;
            if on_gpu {
                Some(of_torch(object)?)
            } else {
                None
            }
        } else {
            of_other(object)?
        };
        let Some(foreign) = foreign else {
            return Ok(None);
        };
        let bytes = foreign.dtype.bytes_of(&foreign.shape)?;
        if bytes > 0 && foreign.address == 0 {
            return Err(PyValueError::new_err("the array has no memory"));
        }
        // SAFETY: the other library has so many bytes there, and keeps them while the caller holds its array. Its
        // uses are ordered by its stream.
        let buffer = unsafe {
            DeviceBuf::from_raw(&foreign.device.inner, DevicePtr(foreign.address), bytes, ())
        };
        Ok(Some(Self {
            device: foreign.device,
            dtype: foreign.dtype,
            shape: foreign.shape,
            read_only: foreign.read_only,
            must_wait: foreign.tensor.is_some(),
            memory: ViewMemory::Foreign {
                buffer: buffer.or_raise()?,
                _tensor: foreign.tensor,
            },
            current_stream: foreign.current_stream,
        }))
    }

    /// Its address on the device, to write there; `None` if it is read-only.
    pub(crate) fn target(&self) -> Option<DevicePtr> {
        (!self.read_only).then(|| self.slice().device_ptr())
    }

    /// Whether the memory is that of a [`DeviceArray`].
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.memory, ViewMemory::Own(_))
    }

    /// The stream to use if the user names none: the one that its library uses now, or ours.
    pub(crate) fn stream(&self) -> &pinlane::Stream {
        self.current_stream
            .as_ref()
            .unwrap_or(&self.device.own_stream)
    }

    /// The stream that its library uses now, if that has one.
    pub(crate) fn library_stream(&self) -> Option<&pinlane::Stream> {
        self.current_stream.as_ref()
    }

    /// Makes `stream` wait for what other libraries did with an array of ours. They know its address; their work is
    /// assumed to be on the default stream.
    pub(crate) fn wait_for_others(&self, py: Python<'_>, stream: &pinlane::Stream) -> PyResult<()> {
        let ViewMemory::Own(memory) = &self.memory else {
            return Ok(());
        };
        if !memory.is_shared() || self.device.is_simulated() {
            return Ok(());
        }
        let device = &self.device.inner;
        let order = || {
            let event = device.event()?;
            device.default_stream().record(&event)?;
            stream.wait(&event)
        };
        py.detach(order).or_raise()
    }

    /// Whether its library forbids writing to it.
    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The memory, to read.
    pub(crate) fn slice(&self) -> DeviceSlice<'_, u8> {
        match &self.memory {
            ViewMemory::Own(memory) => memory.slice(),
            ViewMemory::Foreign { buffer, .. } => buffer.whole(),
        }
    }

    /// The memory, to write.
    pub(crate) fn slice_mut(&self) -> PyResult<DeviceSliceMut<'_, u8>> {
        if self.read_only {
            return Err(PyValueError::new_err("out is read-only"));
        }
        Ok(match &self.memory {
            ViewMemory::Own(memory) => memory.slice_mut(),
            ViewMemory::Foreign { buffer, .. } => buffer.shared_range_mut(0..buffer.len()),
        })
    }
}

fn of_torch(tensor: &Bound<'_, PyAny>) -> PyResult<Foreign> {
    let py = tensor.py();
    if !tensor
        .call_method0(intern!(py, "is_contiguous"))?
        .extract::<bool>()?
    {
        return Err(not_contiguous());
    }
    let ordinal: u32 = tensor.call_method0(intern!(py, "get_device"))?.extract()?;
    let device = Device::named(py, &format!("cuda:{ordinal}"))?;
    let torch = py.import(intern!(py, "torch"))?;
    // What `torch.cuda.current_stream()` returns, without the object around it.
    let handle: u64 = match torch
        .getattr(intern!(py, "_C"))?
        .getattr_opt(intern!(py, "_cuda_getCurrentRawStream"))?
    {
        Some(get) => get.call1((ordinal,))?.extract()?,
        None => {
            let current = torch
                .getattr("cuda")?
                .call_method1("current_stream", (ordinal,))?;
            current.getattr("cuda_stream")?.extract()?
        }
    };
    // SAFETY: torch keeps its streams.
    let current_stream = unsafe { pinlane::Stream::from_raw(&device.inner, handle) };
    Ok(Foreign {
        device,
        address: tensor.call_method0(intern!(py, "data_ptr"))?.extract()?,
        dtype: Dtype::of_any(&tensor.getattr(intern!(py, "dtype"))?)?,
        shape: tensor.getattr(intern!(py, "shape"))?.extract()?,
        read_only: false,
        current_stream: Some(current_stream),
        tensor: None,
    })
}

/// CuPy, JAX, Numba and others.
fn of_other(object: &Bound<'_, PyAny>) -> PyResult<Option<Foreign>> {
    let py = object.py();
    let interface = object.getattr_opt(intern!(py, "__cuda_array_interface__"))?;
    let module = object.get_type().getattr(intern!(py, "__module__"))?;
    let module = module.extract::<&str>().unwrap_or("");
    // The interface of these two names the stream, or means the default stream. Others may have streams that only
    // DLPack orders.
    let names_stream = module.starts_with("cupy") || module.starts_with("numba");
    match interface {
        Some(interface) => {
            let by_dlpack = if names_stream {
                None
            } else {
                of_dlpack(object)?
            };
            match by_dlpack {
                None => of_cuda_array_interface(object, &interface.cast_into()?).map(Some),
                found => Ok(found),
            }
        }
        None => of_dlpack(object),
    }
}

/// What speaks version 2 or 3 of the interface.
fn of_cuda_array_interface(
    object: &Bound<'_, PyAny>,
    interface: &Bound<'_, PyDict>,
) -> PyResult<Foreign> {
    let py = object.py();
    let item = |name: &str| {
        let value = interface.get_item(name)?;
        value.ok_or_else(|| PyTypeError::new_err("__cuda_array_interface__ is incomplete"))
    };
    let (address, read_only): (u64, bool) = item("data")?.extract()?;
    let shape: Vec<usize> = item("shape")?.extract()?;
    if interface
        .get_item("mask")?
        .is_some_and(|mask| !mask.is_none())
    {
        return Err(PyTypeError::new_err(
            "an array with a mask cannot be copied",
        ));
    }
    let typestr = item("typestr")?;
    // Types that NumPy does not have, such as bfloat16, are raw bytes there.
    let dtype = match object.getattr_opt(intern!(py, "dtype"))? {
        Some(dtype) if typestr.extract::<&str>()?.contains('V') => Dtype::of_any(&dtype)?,
        _ => Dtype::of_any(&typestr)?,
    };
    if let Some(strides) = interface
        .get_item("strides")?
        .filter(|strides| !strides.is_none())
    {
        let strides: Vec<isize> = strides.extract()?;
        if strides.len() != shape.len() {
            return Err(PyTypeError::new_err(
                "__cuda_array_interface__ has strides for other axes",
            ));
        }
        dtype.bytes_of(&shape)?;
        let mut wanted = dtype.bytes() as isize;
        for (&len, &stride) in shape.iter().zip(&strides).rev() {
            if len > 1 && stride != wanted && !shape.contains(&0) {
                return Err(not_contiguous());
            }
            wanted *= len as isize;
        }
    }
    let ordinal = match object.getattr_opt(intern!(py, "device"))? {
        Some(device) => match device.getattr_opt(intern!(py, "id"))? {
            Some(id) => id.extract().unwrap_or(0),
            None => 0,
        },
        None => 0,
    };
    let device = Device::named(py, &format!("cuda:{ordinal}"))?;
    let current_stream = match interface
        .get_item("stream")?
        .filter(|stream| !stream.is_none())
    {
        Some(stream) => stream::of_any(&device, &stream)?,
        // Older versions of the interface mean the default stream.
        None => device.inner.default_stream(),
    };
    Ok(Foreign {
        device,
        address,
        dtype,
        shape,
        read_only,
        current_stream: Some(current_stream),
        tensor: None,
    })
}

/// JAX, and everything else that speaks DLPack.
fn of_dlpack(object: &Bound<'_, PyAny>) -> PyResult<Option<Foreign>> {
    let py = object.py();
    let Some(place) = object.getattr_opt(intern!(py, "__dlpack_device__"))? else {
        return Ok(None);
    };
    let (place, ordinal): (i32, i32) = place.call0()?.extract()?;
    if place != crate::dlpack::CUDA {
        return Ok(None);
    }
    let device = Device::named(py, &format!("cuda:{ordinal}"))?;
    let handle = pinlane::raw::stream_handle(&device.own_stream);
    let tensor = ImportedTensor::of_cuda(object, handle as i64)?;
    if !tensor.is_contiguous() {
        return Err(not_contiguous());
    }
    Ok(Some(Foreign {
        address: tensor.start().expose_provenance() as u64,
        dtype: tensor.dtype()?,
        shape: tensor.shape(),
        read_only: tensor.is_read_only(),
        // The other library has ordered its work before ours.
        current_stream: None,
        tensor: Some(tensor),
        device,
    }))
}

fn not_contiguous() -> PyErr {
    PyValueError::new_err("an array on a device must be contiguous in C order to be copied")
}

//! Device memory with a shape, for every library that takes DLPack or `__cuda_array_interface__`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinlane::{DeviceBuf, DeviceSlice, DeviceSliceMut};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::batch_memory::BatchPart;
use crate::copies;
use crate::device::Device;
use crate::dlpack::{self, TensorDescription};
use crate::dtype::{Dtype, shape_text};
use crate::errors::OrRaise;
use crate::fork;
use crate::stream::simulated;

/// An array in device memory.
///
/// `torch.from_dlpack`, `cupy.from_dlpack`, `jax.dlpack.from_dlpack` and `numba.cuda.as_cuda_array` share its memory.
/// An array of a simulated device cannot be shared: it is no CUDA memory.
#[pyclass(frozen, module = "pinlane", weakref)]
pub(crate) struct DeviceArray {
    pub(crate) device: Device,
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    pub(crate) memory: Arc<ArrayMemory>,
}

/// The memory of arrays that share it, here and in other libraries.
pub(crate) enum ArrayMemory {
    Own(OwnMemory),
    /// A part of a loader's batch.
    Batch(BatchPart),
}

/// An allocation.
pub(crate) struct OwnMemory {
    /// Taken by the drop.
    buffer: Option<DeviceBuf<u8>>,
    device: pinlane::Device,
    /// Whether another library knows the address.
    is_shared: AtomicBool,
}

/// Memory from this size on is freed by another thread.
const LARGE_BYTES: usize = 4 << 20;

impl OwnMemory {
    fn buffer(&self) -> &DeviceBuf<u8> {
        self.buffer.as_ref().expect("taken by the drop only")
    }
}

impl Drop for OwnMemory {
    fn drop(&mut self) {
        let Some(buffer) = self.buffer.take() else {
            return;
        };
        if fork::is_child() {
            return std::mem::forget(buffer);
        }
        // Another library may still use it, on streams that we do not know. And freeing much memory takes a while,
        // which Python's other threads should not wait for.
        if self.is_shared.load(Ordering::Acquire) || buffer.len() >= LARGE_BYTES {
            self.device.release_when_idle(buffer);
        }
    }
}

impl ArrayMemory {
    /// The bytes, to read.
    pub(crate) fn slice(&self) -> DeviceSlice<'_, u8> {
        match self {
            Self::Own(own) => own.buffer().whole(),
            Self::Batch(part) => part.slice(),
        }
    }

    /// The bytes, to write. The ledger orders all uses.
    pub(crate) fn slice_mut(&self) -> DeviceSliceMut<'_, u8> {
        match self {
            Self::Own(own) => own.buffer().shared_range_mut(0..own.buffer().len()),
            Self::Batch(part) => part.slice_mut(),
        }
    }

    /// Whether another library knows the address.
    pub(crate) fn is_shared(&self) -> bool {
        match self {
            Self::Own(own) => own.is_shared.load(Ordering::Acquire),
            Self::Batch(part) => part.is_shared(),
        }
    }

    /// Another library knows the address.
    fn set_shared(&self) {
        match self {
            Self::Own(own) => own.is_shared.store(true, Ordering::Release),
            Self::Batch(part) => part.set_shared(),
        }
    }
}

impl DeviceArray {
    /// An array with unspecified contents.
    pub(crate) fn new(
        py: Python<'_>,
        device: &Device,
        dtype: Dtype,
        shape: Vec<usize>,
    ) -> PyResult<Self> {
        let bytes = dtype.bytes_of(&shape)?;
        // Detached: on a full device it waits for memory whose owners may need the interpreter.
        let buffer = py.detach(|| device.inner.alloc::<u8>(bytes)).or_raise()?;
        Ok(Self::of_buffer(device, dtype, shape, buffer))
    }

    /// An array in this memory, which has the size of the array.
    pub(crate) fn of_buffer(
        device: &Device,
        dtype: Dtype,
        shape: Vec<usize>,
        buffer: DeviceBuf<u8>,
    ) -> Self {
        Self {
            device: device.clone(),
            dtype,
            shape,
            memory: Arc::new(ArrayMemory::Own(OwnMemory {
                buffer: Some(buffer),
                device: device.inner.clone(),
                is_shared: AtomicBool::new(false),
            })),
        }
    }

    /// Makes `stream` wait for what writes the array, and counts it as shared.
    fn share_with(&self, py: Python<'_>, stream: &pinlane::Stream) -> PyResult<()> {
        fork::refuse_child()?;
        self.memory.set_shared();
        // It may write, so it waits for readers, too.
        py.detach(|| self.memory.slice_mut().ready_on(stream))
            .or_raise()
    }

    /// A DLPack capsule for a consumer that orders its uses itself.
    pub(crate) fn capsule<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.export(py, self.__dlpack_device__()?, None)
    }

    fn export<'py>(
        &self,
        py: Python<'py>,
        device: (i32, i32),
        max_version: Option<(u32, u32)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let tensor = TensorDescription {
            data: self.memory.slice().device_ptr().0,
            device,
            dtype: self.dtype,
            shape: self.shape.clone(),
        };
        tensor.export(py, Arc::clone(&self.memory), max_version)
    }

    fn bytes(&self) -> usize {
        self.memory.slice().len()
    }
}

#[pymethods]
impl DeviceArray {
    /// Its device.
    #[getter]
    fn device(&self) -> Device {
        self.device.clone()
    }

    /// Number of elements along each axis.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// Name of the element type, as NumPy and torch spell it.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// Size in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.bytes()
    }

    /// Its address on the device.
    #[getter]
    fn address(&self) -> u64 {
        // Whoever knows it may use it after we are dropped.
        self.memory.set_shared();
        self.memory.slice().device_ptr().0
    }

    /// The same memory with another shape. One length may be -1.
    #[pyo3(signature = (*shape))]
    fn reshape(&self, shape: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let mut lens: Vec<isize> = match shape.len() {
            1 => match shape.get_item(0)?.extract::<Vec<isize>>() {
                Ok(lens) => lens,
                Err(_) => shape.extract()?,
            },
            _ => shape
                .iter()
                .map(|len| len.extract())
                .collect::<PyResult<_>>()?,
        };
        let refused = format!(
            "an array of {} elements cannot have the shape {}",
            self.size(),
            shape_text(&lens)
        );
        let mut known = lens.iter().filter(|&&len| len >= 0);
        let known = known.try_fold(1usize, |count, &len| count.checked_mul(len as usize));
        let mut unknown: Vec<&mut isize> = lens.iter_mut().filter(|len| **len == -1).collect();
        if let [unknown] = unknown.as_mut_slice() {
            let left = known.and_then(|known| self.size().checked_div(known));
            **unknown = left.unwrap_or(0) as isize;
        }
        let shape: Option<Vec<usize>> = lens.iter().map(|&len| len.try_into().ok()).collect();
        match shape {
            Some(shape)
                if self.dtype.bytes_of(&shape).is_ok()
                    && shape.iter().product::<usize>() == self.size() =>
            {
                Ok(Self {
                    device: self.device.clone(),
                    dtype: self.dtype,
                    shape,
                    memory: Arc::clone(&self.memory),
                })
            }
            _ => Err(PyValueError::new_err(refused)),
        }
    }

    /// Copies it into a new NumPy array.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        copies::to_host(slf.py(), slf.as_any(), None, None)
    }

    /// NumPy would make an array of one Python object of it.
    #[pyo3(signature = (*_args, **_kwargs))]
    fn __array__(
        &self,
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "an array on a device becomes a NumPy array only by a copy: array.numpy()",
        ))
    }

    fn __len__(&self) -> PyResult<usize> {
        let first = self.shape.first().copied();
        first.ok_or_else(|| PyTypeError::new_err("an array without axes has no length"))
    }

    fn __repr__(&self) -> String {
        format!(
            "<pinlane.DeviceArray {} {} on {}>",
            shape_text(&self.shape),
            self.dtype,
            self.device.name
        )
    }

    /// The memory for CuPy, Numba and others.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.device.is_simulated() {
            // So that `hasattr` is false.
            return Err(PyAttributeError::new_err(
                "an array of a simulated device is no CUDA memory: __cuda_array_interface__",
            ));
        }
        let stream = &self.device.own_stream;
        self.share_with(py, stream)?;
        let interface = PyDict::new(py);
        interface.set_item("shape", self.shape(py)?)?;
        interface.set_item("typestr", self.dtype.typestr())?;
        interface.set_item("data", (self.address(), false))?;
        interface.set_item("strides", py.None())?;
        interface.set_item("version", 3)?;
        interface.set_item("stream", pinlane::raw::stream_handle(stream))?;
        Ok(interface)
    }

    /// Where the memory is, for DLPack.
    fn __dlpack_device__(&self) -> PyResult<(i32, i32)> {
        match self.device.is_simulated() {
            true => Err(simulated("an array")),
            false => Ok((dlpack::CUDA, self.device.inner.info().ordinal as i32)),
        }
    }

    /// The memory for libraries that speak DLPack.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let place = self.__dlpack_device__()?;
        if dl_device.is_some_and(|wanted| wanted != place) {
            return Err(PyBufferError::new_err(
                "the array is on another device; copy it with to_host",
            ));
        }
        if copy == Some(true) {
            return Err(PyBufferError::new_err("the memory is shared, not copied"));
        }
        match stream {
            // The consumer wants no order.
            Some(-1) => self.memory.set_shared(),
            Some(0) => {
                return Err(PyValueError::new_err(
                    "stream 0 is ambiguous: 1 is the default stream",
                ));
            }
            stream => {
                let handle = u64::try_from(stream.unwrap_or(1));
                let handle =
                    handle.map_err(|_| PyValueError::new_err("stream must be a handle"))?;
                // SAFETY: the consumer passes a stream that it will use.
                let stream = unsafe { pinlane::Stream::from_raw(&self.device.inner, handle) };
                self.share_with(py, &stream)?;
            }
        }
        self.export(py, place, max_version)
    }
}

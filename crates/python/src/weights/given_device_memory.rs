//! Device memory that Python gives to a load.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use pinlane::load::{DeviceTarget, TargetRequest, TensorInfo};
use pinlane::{DevicePtr, Error, ErrorKind, Stream};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::array_type::{ArrayType, of_tensor};
use crate::device::Device;
use crate::foreign_device_array::DeviceView;

/// Arrays asked for at once, so that the interpreter is seldom attached, and seldom for long.
pub(super) const ARRAYS_AT_ONCE: usize = 64;

/// An array that the load fills, and what keeps its memory there.
pub(super) struct GivenArray {
    pub(super) array: Py<PyAny>,
    pub(super) _view: Option<DeviceView>,
}

/// The exception that ended a load, if Python raised one.
#[derive(Clone, Default)]
pub(super) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// Keeps the exception. Returns an error for the load.
    fn keep(&self, raised: PyErr) -> Error {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
        Error::other(ErrorKind::InvalidInput, AllocatorRaised)
    }

    pub(super) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Never seen by users: the exception is raised instead.
#[derive(Debug)]
struct AllocatorRaised;

impl std::fmt::Display for AllocatorRaised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the function that allocates arrays raised an exception")
    }
}

impl std::error::Error for AllocatorRaised {}

/// Arrays of another library, allocated by a function in Python for several tensors at once.
pub(super) struct PythonAllocator {
    pub(super) allocate: Py<PyAny>,
    pub(super) types: Vec<ArrayType>,
    /// Arrays for the next tensors: the number of each, array and address.
    pub(super) ready: VecDeque<(usize, Py<PyAny>, u64)>,
    /// The most bytes to ask for at once, other than for one array.
    pub(super) ahead_bytes: usize,
    pub(super) stream: Stream,
    pub(super) raised: Raised,
}

impl PythonAllocator {
    pub(super) fn target(
        &mut self,
        request: &TargetRequest<'_>,
    ) -> pinlane::Result<DeviceTarget<GivenArray>> {
        let number = request.number();
        if self
            .ready
            .front()
            .is_none_or(|(ready, ..)| *ready != number)
        {
            let asked = Python::attach(|py| self.ask(py, number));
            asked.map_err(|raised| self.raised.keep(raised))?;
        }
        let (_, array, address) = self.ready.pop_front().expect("just asked for");
        let given = GivenArray { array, _view: None };
        // SAFETY: the array was just allocated on this stream, with the size of its type. It is kept until the load
        // hands it out or drops it.
        let target = unsafe {
            DeviceTarget::from_raw(
                &self.stream,
                DevicePtr(address),
                self.types[number].bytes,
                given,
            )
        };
        Ok(target)
    }

    /// Asks for the arrays of this tensor and of some that follow: the load asks in the order of the files, empty
    /// tensors first.
    fn ask(&mut self, py: Python<'_>, first: usize) -> PyResult<()> {
        self.ready.clear();
        let is_empty = self.types[first].bytes == 0;
        let following =
            (first..self.types.len()).filter(|number| (self.types[*number].bytes == 0) == is_empty);
        let mut bytes = 0;
        let numbers: Vec<usize> = following
            .take(ARRAYS_AT_ONCE)
            .take_while(|number| {
                bytes += self.types[*number].bytes;
                *number == first || bytes <= self.ahead_bytes
            })
            .collect();
        let requests = numbers
            .iter()
            .map(|number| self.types[*number].for_python(py));
        let requests = requests.collect::<PyResult<Vec<_>>>()?;
        let given = self.allocate.call1(py, (requests,))?;
        let (arrays, addresses): (Vec<Py<PyAny>>, Vec<u64>) = given.extract(py)?;
        if arrays.len() != numbers.len() || addresses.len() != numbers.len() {
            return Err(PyValueError::new_err("one array per tensor is needed"));
        }
        let given = numbers.into_iter().zip(arrays).zip(addresses);
        self.ready
            .extend(given.map(|((number, array), address)| (number, array, address)));
        Ok(())
    }
}

/// Existing arrays, by the number of their tensor.
pub(super) struct ExistingArrays {
    pub(super) arrays: Vec<Option<(GivenArray, DevicePtr)>>,
    pub(super) bytes: Vec<usize>,
    pub(super) stream: Stream,
}

impl ExistingArrays {
    /// Checks that the arrays have the right types, and are on the device.
    pub(super) fn new(
        device: &Device,
        tensors: &[TensorInfo],
        types: &[ArrayType],
        out: &[Bound<'_, PyAny>],
        stream: Option<Stream>,
    ) -> PyResult<Self> {
        let mut found_stream = None;
        let mut is_own = false;
        let mut arrays = Vec::with_capacity(out.len());
        for ((tensor, array), out) in tensors.iter().zip(types).zip(out) {
            let checked = existing(device, array, out);
            let (view, address) =
                checked.map_err(|error| of_tensor(out.py(), tensor.name(), &error))?;
            is_own |= view.is_own();
            found_stream.get_or_insert_with(|| view.stream().clone());
            let given = GivenArray {
                array: out.clone().unbind(),
                _view: Some(view),
            };
            arrays.push(Some((given, address)));
        }
        if is_own && let Some(out) = out.first() {
            // Earlier copies to arrays of our own may be on any stream.
            device.synchronize_all(out.py())?;
        }
        let stream = stream
            .or(found_stream)
            .unwrap_or_else(|| device.own_stream.clone());
        Ok(Self {
            arrays,
            bytes: types.iter().map(|array| array.bytes).collect(),
            stream,
        })
    }

    pub(super) fn target(
        &mut self,
        request: &TargetRequest<'_>,
    ) -> pinlane::Result<DeviceTarget<GivenArray>> {
        let number = request.number();
        let (given, address) = self.arrays[number].take().expect("asked for once");
        // SAFETY: the view says that so many bytes are there, and keeps them; its library uses them on this stream.
        let target =
            unsafe { DeviceTarget::from_raw(&self.stream, address, self.bytes[number], given) };
        Ok(target)
    }
}

fn existing(
    device: &Device,
    array: &ArrayType,
    out: &Bound<'_, PyAny>,
) -> PyResult<(DeviceView, DevicePtr)> {
    let Some(view) = DeviceView::of_any(out)? else {
        return Err(PyTypeError::new_err("out must be an array on a device"));
    };
    if view.device.name != device.name {
        let message = format!("out is on {}, not on {}", view.device.name, device.name);
        return Err(PyValueError::new_err(message));
    }
    let checked = array.check(&view.shape, view.dtype);
    checked.map_err(PyValueError::new_err)?;
    match view.target() {
        Some(address) => Ok((view, address)),
        None => Err(PyValueError::new_err("out is read-only")),
    }
}

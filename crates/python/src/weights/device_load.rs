//! A running load to a device.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use pinlane::load::{
    DeviceTarget, Dtype as FileDtype, FilledTensor, LoadConfig, LoadError, TargetRequest,
    TargetStream, Weights,
};
use pinlane::{DeviceBuf, Stream};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::array_type::{ArrayType, ElementType};
use super::given_device_memory::{
    ARRAYS_AT_ONCE, ExistingArrays, GivenArray, PythonAllocator, Raised,
};
use crate::device::Device;
use crate::device_array::DeviceArray;
use crate::dtype::Dtype;
use crate::errors::OrRaise;
use crate::fork::{self, LeakedInChild};
use crate::interruptible_wait::BETWEEN_CHECKS;

/// The most bytes of small arrays that are handed to Python at once, or asked of it at once.
const AHEAD_BYTES: u64 = 1 << 20;

/// What to load, and where to.
pub(super) struct LoadRequest {
    pub(super) weights: Weights,
    pub(super) types: Vec<ArrayType>,
    pub(super) convert: Option<FileDtype>,
    pub(super) device: Device,
    /// Where the memory was used before.
    pub(super) stream: Option<Stream>,
    pub(super) device_bytes: Option<u64>,
}

type Allocate<O> = Box<dyn FnMut(&TargetRequest<'_>) -> pinlane::Result<DeviceTarget<O>> + Send>;

/// A tensor's name, and its array.
type NamedArray<'a> = (&'a str, Py<PyAny>);

enum Running {
    Own(TargetStream<DeviceBuf<u8>, Allocate<DeviceBuf<u8>>>),
    Given(TargetStream<GivenArray, Allocate<GivenArray>>),
}

/// Arrays that are complete.
enum Landed {
    Own(Vec<FilledTensor<DeviceBuf<u8>>>),
    Given(Vec<FilledTensor<GivenArray>>),
}

/// A running load to a device. Closing it, or dropping it, cancels it and frees what it still has.
#[pyclass(frozen, module = "pinlane")]
pub(crate) struct DeviceLoad {
    /// Locked only while detached from the interpreter, which the allocator attaches to.
    running: Mutex<LeakedInChild<Option<Running>>>,
    device: Device,
    types: Vec<ArrayType>,
    names: Vec<String>,
    raised: Raised,
    ahead_bytes: u64,
}

impl LoadRequest {
    /// Into arrays of our own.
    pub(super) fn into_own(self, py: Python<'_>) -> PyResult<DeviceLoad> {
        for (tensor, array) in self.weights.tensors().iter().zip(&self.types) {
            if let ElementType::PackedF4 = array.elements {
                let name = tensor.name();
                return Err(PyTypeError::new_err(format!(
                    "tensor {name:?} has elements of type F4, which only torch can have; leave it out with select"
                )));
            }
        }
        let stream = self.device.own_stream.clone();
        let allocate: Allocate<_> = {
            let stream = stream.clone();
            Box::new(move |tensor| Ok(DeviceTarget::buffer(stream.alloc(tensor.len_bytes())?)))
        };
        self.start(py, stream, Raised::default(), allocate, Running::Own)
    }

    /// Into arrays that a function in Python allocates.
    pub(super) fn into_allocated(
        self,
        py: Python<'_>,
        allocate: Py<PyAny>,
    ) -> PyResult<DeviceLoad> {
        let stream = self.stream.clone();
        let stream = stream.unwrap_or_else(|| self.device.own_stream.clone());
        let raised = Raised::default();
        let mut allocator = PythonAllocator {
            allocate,
            types: self.types.clone(),
            ready: VecDeque::new(),
            ahead_bytes: self.ahead_bytes() as usize,
            stream: stream.clone(),
            raised: raised.clone(),
        };
        let allocate: Allocate<_> = Box::new(move |tensor| allocator.target(tensor));
        self.start(py, stream, raised, allocate, Running::Given)
    }

    /// Into existing arrays.
    pub(super) fn into_existing(
        self,
        py: Python<'_>,
        out: &[Bound<'_, PyAny>],
    ) -> PyResult<DeviceLoad> {
        let (tensors, stream) = (self.weights.tensors(), self.stream.clone());
        let mut existing = ExistingArrays::new(&self.device, tensors, &self.types, out, stream)?;
        let stream = existing.stream.clone();
        let allocate: Allocate<_> = Box::new(move |tensor| existing.target(tensor));
        self.start(py, stream, Raised::default(), allocate, Running::Given)
    }

    /// How far small arrays may be ahead of the load, and of the consumer: a small part of the window.
    fn ahead_bytes(&self) -> u64 {
        let share = self.device_bytes.map_or(u64::MAX, |window| window / 16);
        share.min(AHEAD_BYTES)
    }

    fn start<O: Send>(
        self,
        py: Python<'_>,
        stream: Stream,
        raised: Raised,
        allocate: Allocate<O>,
        running: impl FnOnce(TargetStream<O, Allocate<O>>) -> Running + Send,
    ) -> PyResult<DeviceLoad> {
        let ahead_bytes = self.ahead_bytes();
        let mut config = LoadConfig::default();
        config.convert = self.convert;
        // What is ahead on either side is part of the window.
        let window = self.device_bytes.map(|window| window - 2 * ahead_bytes);
        config.device_bytes = window;
        let weights = &self.weights;
        let started = py.detach(|| {
            let started = weights.start_into(&stream, &config, allocate);
            started.map(running)
        });
        let running = started.map_err(|error| raise(&raised, error))?;
        let tensors = self.weights.tensors().iter();
        Ok(DeviceLoad {
            running: Mutex::new(Some(running).into()),
            device: self.device,
            types: self.types,
            names: tensors.map(|tensor| tensor.name().to_owned()).collect(),
            raised,
            ahead_bytes,
        })
    }
}

impl DeviceLoad {
    /// What has landed, after at most one wait; `None` at the end.
    fn landed(&self, py: Python<'_>, rule: TakeRule) -> PyResult<Option<Landed>> {
        fork::refuse_child()?;
        let landed = py.detach(|| {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            let landed = match running.as_mut() {
                None => Ok(None),
                Some(Running::Own(stream)) => {
                    take(stream, &self.types, rule).map(|some| some.map(Landed::Own))
                }
                Some(Running::Given(stream)) => {
                    take(stream, &self.types, rule).map(|some| some.map(Landed::Given))
                }
            };
            if !matches!(landed, Ok(Some(_))) {
                **running = None;
            }
            landed
        });
        let landed = landed.map_err(|error| raise(&self.raised, error))?;
        py.check_signals()?;
        Ok(landed)
    }

    /// Calls `each` with the number and the array of everything that landed.
    fn each(
        &self,
        py: Python<'_>,
        landed: Landed,
        mut each: impl FnMut(usize, Py<PyAny>) -> PyResult<()>,
    ) -> PyResult<()> {
        match landed {
            Landed::Own(filled) => filled.into_iter().try_for_each(|filled| {
                let array = &self.types[filled.number];
                let dtype = match array.elements {
                    ElementType::Known(dtype) => dtype,
                    ElementType::PackedF4 => Dtype::U8,
                };
                let shape = array.shape.clone();
                let array = DeviceArray::of_buffer(&self.device, dtype, shape, filled.owner);
                each(filled.number, Py::new(py, array)?.into_any())
            }),
            Landed::Given(filled) => filled
                .into_iter()
                .try_for_each(|filled| each(filled.number, filled.owner.array)),
        }
    }
}

#[pymethods]
impl DeviceLoad {
    /// Names and arrays that are complete, at least one; `None` at the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Vec<NamedArray<'_>>>> {
        let rule = TakeRule::Some {
            bytes: self.ahead_bytes,
        };
        while let Some(landed) = self.landed(py, rule)? {
            let mut arrays = Vec::new();
            self.each(py, landed, |number, array| {
                arrays.push((self.names[number].as_str(), array));
                Ok(())
            })?;
            if !arrays.is_empty() {
                return Ok(Some(arrays));
            }
        }
        Ok(None)
    }

    /// Waits for all arrays. Returns them by name, in the order in which they were named.
    fn all<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut arrays: Vec<Option<Py<PyAny>>> = self.names.iter().map(|_| None).collect();
        while let Some(landed) = self.landed(py, TakeRule::All)? {
            self.each(py, landed, |number, array| {
                arrays[number] = Some(array);
                Ok(())
            })?;
        }
        let by_name = PyDict::new(py);
        for (name, array) in self.names.iter().zip(arrays) {
            by_name.set_item(name, array)?;
        }
        Ok(by_name)
    }

    /// Cancels the load, and frees what it still has.
    fn close(&self, py: Python<'_>) {
        if fork::is_child() {
            return; // its threads are the parent's
        }
        py.detach(|| {
            let running = self.running.lock();
            drop(running.unwrap_or_else(PoisonError::into_inner).take());
        });
    }
}

/// How much to take at once.
#[derive(Clone, Copy)]
enum TakeRule {
    /// What is there, up to so many bytes; waits only for the first.
    Some { bytes: u64 },
    /// All that completes before signals are looked for.
    All,
}

/// Takes complete tensors. Empty after a wait in which none completed; `None` at the end.
fn take<O>(
    stream: &mut TargetStream<O, Allocate<O>>,
    types: &[ArrayType],
    rule: TakeRule,
) -> Result<Option<Vec<FilledTensor<O>>>, LoadError> {
    let (mut taken, mut taken_bytes) = (Vec::new(), 0);
    let until = Instant::now() + BETWEEN_CHECKS;
    loop {
        let at_most = match rule {
            TakeRule::Some { .. } if !taken.is_empty() => Duration::ZERO,
            _ => until.saturating_duration_since(Instant::now()),
        };
        match stream.next_within(at_most) {
            Poll::Ready(Some(Ok(filled))) => {
                taken_bytes += types[filled.number].bytes as u64;
                taken.push(filled);
            }
            Poll::Ready(Some(Err(error))) => return Err(error),
            Poll::Ready(None) if taken.is_empty() => return Ok(None),
            Poll::Ready(None) | Poll::Pending => return Ok(Some(taken)),
        }
        let is_enough = match rule {
            TakeRule::Some { bytes } => taken_bytes >= bytes || taken.len() >= ARRAYS_AT_ONCE,
            TakeRule::All => Instant::now() >= until,
        };
        if is_enough {
            return Ok(Some(taken));
        }
    }
}

/// The exception of the allocator, or that of the error.
fn raise(raised: &Raised, error: LoadError) -> PyErr {
    match raised.take() {
        Some(raised) => raised,
        None => Err::<(), _>(error).or_raise().expect_err("an error"),
    }
}

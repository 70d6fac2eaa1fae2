//! Streams and events, ours and those of other libraries.

use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

use crate::copies;
use crate::device::Device;
use crate::errors::{OrRaise, invalid_input};
use crate::fork::{self, LeakedInChild};
use crate::host_array::class_name;
use crate::interruptible_wait::interruptible;

/// A queue of work on a device. Work on one stream runs in order; streams run side by side.
///
/// CuPy, JAX, Numba and CUDA Python take it where they take streams (`__cuda_stream__`); for torch:
/// `torch.cuda.ExternalStream(stream.handle)`.
#[pyclass(frozen, module = "pinlane")]
pub(crate) struct Stream {
    pub(crate) device: Device,
    pub(crate) inner: LeakedInChild<pinlane::Stream>,
}

impl Stream {
    pub(crate) fn new(device: &Device, inner: pinlane::Stream) -> Self {
        Self {
            device: device.clone(),
            inner: inner.into(),
        }
    }
}

#[pymethods]
impl Stream {
    /// A new stream of the device.
    #[new]
    #[pyo3(signature = (device=None))]
    fn open(py: Python<'_>, device: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let device = Device::of_any(py, device)?;
        let inner = py.detach(|| device.inner.stream()).or_raise()?;
        Ok(Self::new(&device, inner))
    }

    /// Its device.
    #[getter]
    fn device(&self) -> Device {
        self.device.clone()
    }

    /// CUDA's handle of the stream, as a number.
    #[getter]
    fn handle(&self) -> PyResult<u64> {
        if self.device.is_simulated() {
            // So that `hasattr` is false.
            return Err(PyAttributeError::new_err(
                "a stream of a simulated device does not exist in CUDA: it has no handle",
            ));
        }
        Ok(pinlane::raw::stream_handle(&self.inner))
    }

    /// The stream for libraries that share streams: a version, and the handle.
    fn __cuda_stream__(&self) -> PyResult<(u32, u64)> {
        if self.device.is_simulated() {
            return Err(simulated("a stream"));
        }
        Ok((0, self.handle()?))
    }

    /// Waits until all work on the stream is done.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        self.device.synchronize_stream(py, &self.inner)
    }

    /// Copies an array on the host into one on the device with the driver's own copy, as other libraries do, and returns
    /// when it is done. It is there to compare with: `to_device` is several times as fast from memory that is not pinned.
    fn driver_copy(
        &self,
        py: Python<'_>,
        src: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        fork::refuse_child()?;
        copies::by_driver(py, src, out, &self.inner)
    }

    /// Whether all work on the stream is done.
    fn is_idle(&self) -> PyResult<bool> {
        fork::refuse_child()?;
        self.inner.is_idle().or_raise()
    }

    /// Records an event, a new one if none is given, and returns it: it is done when all work so far is.
    #[pyo3(signature = (event=None))]
    fn record<'py>(
        &self,
        py: Python<'py>,
        event: Option<Bound<'py, Event>>,
    ) -> PyResult<Bound<'py, Event>> {
        fork::refuse_child()?;
        let event = match event {
            Some(event) => event,
            None => Bound::new(py, Event::of(&self.device)?)?,
        };
        check_devices("event", &event.get().device, "stream", &self.device)?;
        self.inner.record(&event.get().inner).or_raise()?;
        Ok(event)
    }

    /// Makes later work wait for an event, or for all work so far of another stream.
    fn wait(&self, other: &Bound<'_, PyAny>) -> PyResult<()> {
        fork::refuse_child()?;
        if let Ok(event) = other.cast::<Event>() {
            check_devices("event", &event.get().device, "stream", &self.device)?;
            return self.inner.wait(&event.get().inner).or_raise();
        }
        let other = of_any(&self.device, other)?;
        let event = self.device.inner.event().or_raise()?;
        other.record(&event).or_raise()?;
        self.inner.wait(&event).or_raise()
    }

    fn __repr__(&self) -> String {
        format!("<pinlane.Stream of {}>", self.device.name)
    }
}

/// A point in a stream, with the time at which the device reached it.
#[pyclass(frozen, module = "pinlane")]
pub(crate) struct Event {
    device: Device,
    inner: LeakedInChild<pinlane::Event>,
}

impl Event {
    fn of(device: &Device) -> PyResult<Self> {
        let inner = device.inner.event_with_timing().or_raise()?;
        Ok(Self {
            device: device.clone(),
            inner: inner.into(),
        })
    }
}

#[pymethods]
impl Event {
    /// An event of the device, not recorded yet.
    #[new]
    #[pyo3(signature = (device=None))]
    fn open(py: Python<'_>, device: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Self::of(&Device::of_any(py, device)?)
    }

    /// Whether the device has reached it.
    fn is_done(&self) -> PyResult<bool> {
        fork::refuse_child()?;
        self.inner.is_done().or_raise()
    }

    /// Waits until the device has reached it.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        fork::refuse_child()?;
        interruptible(py, |at_most| {
            Ok(self.inner.wait_timeout(at_most)?.then_some(()))
        })
    }

    /// Milliseconds on the device from this event to `end`. Both must be done.
    fn elapsed_ms(&self, end: &Bound<'_, Self>) -> PyResult<f64> {
        fork::refuse_child()?;
        check_devices("event", &self.device, "end", &end.get().device)?;
        let nanoseconds = self.inner.elapsed_ns(&end.get().inner).or_raise()?;
        Ok(nanoseconds as f64 / 1e6)
    }
}

/// What a user means by `stream`: a [`Stream`], a handle, or a stream of torch, CuPy or another library.
pub(crate) fn of_any(device: &Device, stream: &Bound<'_, PyAny>) -> PyResult<pinlane::Stream> {
    fork::refuse_child()?;
    let py = stream.py();
    if let Ok(stream) = stream.cast::<Stream>() {
        let found = &stream.get().device.name;
        if *found != device.name {
            let message = format!("the stream is on {found}, not on {}", device.name);
            return Err(invalid_input(&message));
        }
        return Ok(pinlane::Stream::clone(&stream.get().inner));
    }
    if device.is_simulated() {
        return Err(PyTypeError::new_err(format!(
            "a simulated device has streams of its own only: stream must be what stream() of {} returned, not {}",
            device.name,
            class_name(stream)
        )));
    }
    let handle = if let Ok(handle) = stream.extract::<u64>() {
        handle
    } else if let Ok(handle) = stream.getattr(intern!(py, "cuda_stream")) {
        handle.extract()? // torch
    } else if let Ok(describe) = stream.getattr(intern!(py, "__cuda_stream__")) {
        // Numba and older libraries have it as a tuple.
        let pair = if describe.is_callable() {
            describe.call0()?
        } else {
            describe
        };
        let (version, handle): (u32, u64) = pair.extract()?;
        if version != 0 {
            let message = format!("version {version} of __cuda_stream__ is not known");
            return Err(PyValueError::new_err(message));
        }
        handle
    } else if let Ok(handle) = stream.getattr(intern!(py, "ptr")) {
        handle.extract()? // CuPy
    } else {
        return Err(PyTypeError::new_err(format!(
            "stream must be a stream of pinlane, torch, CuPy or Numba, or a handle from 0, not {}",
            stream.repr()?
        )));
    };
    // SAFETY: the caller's library keeps its stream alive during the call, as with every CUDA call.
    Ok(unsafe { pinlane::Stream::from_raw(&device.inner, handle) })
}

/// Raises unless both are on one device.
fn check_devices(what: &str, device: &Device, other: &str, others: &Device) -> PyResult<()> {
    if device.name == others.name {
        return Ok(());
    }
    Err(invalid_input(&format!(
        "the {what} is on {}, but the {other} is on {}",
        device.name, others.name
    )))
}

/// What something of a simulated device cannot be.
pub(crate) fn simulated(what: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "{what} of a simulated device does not exist in CUDA"
    ))
}

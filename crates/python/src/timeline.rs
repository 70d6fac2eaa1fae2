//! Records what the streams of a device do, and draws it.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pinlane::record::Recording;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::device::Device;
use crate::errors::{OrRaise, system_text};
use crate::fork;

/// What the streams of a device did inside of a `with` block. Notebooks draw it; `print` shows it as text.
///
/// All of Pinlane's work on the device is recorded: copies, kernels, memsets, on every stream. Work that other libraries
/// submit themselves is not. Recording costs a few microseconds for each operation.
///
/// >>> import numpy as np, pinlane
/// >>> with pinlane.Timeline("sim:h200", title="There and back") as timeline:
/// ...     array = pinlane.to_device(pinlane.zeros(1 << 20, device="sim:h200"), "sim:h200").numpy()
/// >>> [span["kind"] for span in timeline.spans][0]
/// 'host to device'
/// >>> "SIMULATED" in str(timeline)
/// True
#[pyclass(frozen, module = "pinlane")]
pub(crate) struct Timeline {
    title: String,
    device: Device,
    state: Mutex<TimelineState>,
}

enum TimelineState {
    New,
    Recording,
    Done(Recording),
}

#[pymethods]
impl Timeline {
    /// A timeline of a device, to be recorded by a `with` block.
    #[new]
    #[pyo3(signature = (device=None, *, title="Timeline"))]
    fn open(py: Python<'_>, device: Option<&Bound<'_, PyAny>>, title: &str) -> PyResult<Self> {
        Ok(Self {
            title: title.to_owned(),
            device: Device::of_any(py, device)?,
            state: Mutex::new(TimelineState::New),
        })
    }

    /// Its device.
    #[getter]
    fn device(&self) -> Device {
        self.device.clone()
    }

    /// Its title.
    #[getter]
    fn title(&self) -> &str {
        &self.title
    }

    fn __enter__<'py>(slf: Bound<'py, Self>, py: Python<'py>) -> PyResult<Bound<'py, Self>> {
        fork::refuse_child()?;
        let timeline = slf.get();
        if timeline.device.is_recording.swap(true, Ordering::AcqRel) {
            let name = &timeline.device.name;
            let message = format!("another timeline of {name} is being recorded");
            return Err(PyRuntimeError::new_err(message));
        }
        let recorder = &timeline.device.recorder;
        // What a timeline recorded that was never left is not for this one, and neither is work in flight.
        if let Err(failed) = py.detach(|| recorder.finish("")) {
            timeline.device.is_recording.store(false, Ordering::Release);
            return Err(failed).or_raise();
        }
        *timeline.state() = TimelineState::Recording;
        recorder.resume();
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        if fork::is_child() || !matches!(*self.state(), TimelineState::Recording) {
            return Ok(());
        }
        let recorder = &self.device.recorder;
        recorder.pause();
        let recording = py.detach(|| recorder.finish(&self.title));
        self.device.is_recording.store(false, Ordering::Release);
        *self.state() = TimelineState::New;
        *self.state() = TimelineState::Done(recording.or_raise()?);
        Ok(())
    }

    /// All work, in the order of its end: a list of dicts with `track`, `kind`, `label`, `stream`, `bytes`, `start_ns`
    /// and `end_ns`. Streams are counted from 0, in the order of their first use; times begin with the first work.
    #[getter]
    fn spans<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        // Not under the lock: Python may run other threads while objects are made.
        let recording = recorded(&self.state())?.clone();
        let list = PyList::empty(py);
        for span in recording.timeline().spans() {
            let item = PyDict::new(py);
            item.set_item("track", span.track.name())?;
            item.set_item("kind", span.kind.name())?;
            item.set_item("label", &span.label)?;
            item.set_item("stream", span.stream)?;
            item.set_item("bytes", span.bytes)?;
            item.set_item("start_ns", span.start_ns)?;
            item.set_item("end_ns", span.end_ns)?;
            list.append(item)?;
        }
        Ok(list)
    }

    /// The picture, as SVG.
    fn svg(&self) -> PyResult<String> {
        let recording = recorded(&self.state())?.clone();
        Ok(recording.svg())
    }

    /// Writes it to a file, in the format of its extension: `.svg` for a picture, `.html` for a page to zoom, `.json` for
    /// a trace that Perfetto opens, `.txt` for what `print` shows.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let recording = recorded(&self.state())?.clone();
        let saved = py.detach(|| recording.save(&path));
        saved.map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidInput => PyValueError::new_err(error.to_string()),
            // With the number, so that Python finds the right class.
            _ => match error.raw_os_error() {
                Some(code) => PyOSError::new_err((code, system_text(code), path.into_os_string())),
                None => PyOSError::new_err(error.to_string()),
            },
        })
    }

    fn __str__(&self) -> String {
        match &*self.state() {
            TimelineState::Done(recording) => recording.to_string(),
            _ => self.description(false),
        }
    }

    fn __repr__(&self) -> String {
        let is_done = matches!(*self.state(), TimelineState::Done(_));
        self.description(is_done)
    }

    /// The picture, for notebooks. As an image, so that its styles do not apply to the notebook.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<Option<String>> {
        // Not under the lock, as in `spans`.
        let recording = match &*self.state() {
            TimelineState::Done(recording) => recording.clone(),
            _ => return Ok(None),
        };
        let encode = py.import("base64")?.getattr("b64encode")?;
        let encoded: Vec<u8> = encode.call1((recording.svg().as_bytes(),))?.extract()?;
        let encoded = String::from_utf8_lossy(&encoded);
        Ok(Some(format!(
            "<img style=\"width: 100%\" src=\"data:image/svg+xml;base64,{encoded}\">"
        )))
    }
}

impl Timeline {
    fn state(&self) -> MutexGuard<'_, TimelineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn description(&self, is_done: bool) -> String {
        let note = if is_done { "" } else { ", not recorded yet" };
        format!(
            "<pinlane.Timeline {:?} of {}{note}>",
            self.title, self.device.name
        )
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        // Entered, and never left.
        if !fork::is_child() && matches!(*self.state(), TimelineState::Recording) {
            self.device.recorder.pause();
            self.device.is_recording.store(false, Ordering::Release);
        }
    }
}

fn recorded(state: &TimelineState) -> PyResult<&Recording> {
    match state {
        TimelineState::Done(recording) => Ok(recording),
        _ => Err(PyRuntimeError::new_err(
            "nothing is recorded yet: the timeline is complete at the end of its with block",
        )),
    }
}

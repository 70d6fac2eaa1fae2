//! Devices, opened once a process.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinlane::Budget;
use pinlane::driver::Platform;
use pinlane::record::Recorder;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

use crate::errors::{OrRaise, invalid_input};
use crate::fork;
use crate::host_array::imported;
use crate::interruptible_wait::interruptible;
use crate::stream::Stream;

/// A GPU, real or simulated. It is opened once: what `pinlane.device("cuda:0")` returns is equal every time, and stands
/// for the same device, but is not the same object.
#[pyclass(frozen, module = "pinlane")]
#[derive(Clone)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) inner: pinlane::Device,
    /// For copies that name no stream.
    pub(crate) own_stream: pinlane::Stream,
    /// Paused, except while a timeline is recorded.
    pub(crate) recorder: Arc<Recorder>,
    /// Whether a timeline is being recorded.
    pub(crate) is_recording: Arc<AtomicBool>,
}

/// How much device memory of dropped arrays is kept for new ones: asking the driver takes longer than a small copy.
const KEPT_DEVICE_BYTES: u64 = 256 << 20;

static OPENED: Mutex<Option<HashMap<String, Device>>> = Mutex::new(None);

fn opened() -> MutexGuard<'static, Option<HashMap<String, Device>>> {
    OPENED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Device {
    /// The device with this name, opened at its first use.
    pub(crate) fn named(py: Python<'_>, name: &str) -> PyResult<Self> {
        fork::refuse_child()?;
        let name = canonical(name);
        // Not under the lock: opening a GPU takes a while, and a forked child must not find it locked.
        let find = || opened().get_or_insert_default().get(&*name).cloned();
        if let Some(device) = find() {
            return Ok(device);
        }
        let open = || Self::new(name.to_string(), pinlane::Device::named(&name)?);
        let device = py.detach(open).or_raise()?;
        fork::device_opened();
        // Another thread may have been faster.
        let mut opened = opened();
        let device = opened
            .get_or_insert_default()
            .entry(name.into_owned())
            .or_insert(device);
        Ok(device.clone())
    }

    /// Wraps an opened device.
    pub(crate) fn new(name: String, inner: pinlane::Device) -> pinlane::Result<Self> {
        let (inner, recorder) = Recorder::new(&inner);
        recorder.pause();
        let own_stream = inner.stream()?;
        inner.keep_device_memory(KEPT_DEVICE_BYTES);
        Ok(Self {
            name,
            inner,
            own_stream,
            recorder: Arc::new(recorder),
            is_recording: Arc::default(),
        })
    }

    /// What a user means by `device`: a [`Device`], a name, a number, a `torch.device`, or `None` for the current GPU.
    pub(crate) fn of_any(py: Python<'_>, device: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(device) = device else {
            return Self::named(py, &format!("cuda:{}", current_ordinal(py)));
        };
        if let Ok(device) = device.cast::<Self>() {
            fork::refuse_child()?;
            return Ok(device.get().clone());
        }
        if let Ok(name) = device.extract::<&str>() {
            if name == "cuda" {
                return Self::of_any(py, None);
            }
            return Self::named(py, name);
        }
        let class = device.get_type();
        let is_bool = device.is_instance_of::<PyBool>();
        if !is_bool && device.hasattr(intern!(py, "__index__"))? {
            return match device.extract::<u32>() {
                Ok(ordinal) => Self::named(py, &format!("cuda:{ordinal}")),
                Err(_) => Err(invalid_input(&format!(
                    "there is no device number {device}; they count from 0"
                ))),
            };
        }
        if class.getattr("__module__")?.extract::<&str>()? == "torch" && class.name()? == "device" {
            let name = device.str()?;
            return Self::of_any(py, Some(name.as_any()));
        }
        Err(PyTypeError::new_err(format!(
            "device must be a name such as \"cuda:0\" or \"sim:h200\", a number or a device, not {}",
            class.name()?
        )))
    }

    /// Waits for a stream of this device; Ctrl-C ends the wait.
    pub(crate) fn synchronize_stream(
        &self,
        py: Python<'_>,
        stream: &pinlane::Stream,
    ) -> PyResult<()> {
        fork::refuse_child()?;
        if !stream.is_idle().or_raise()? {
            let event = self.inner.event().or_raise()?;
            stream.record(&event).or_raise()?;
            interruptible(py, |at_most| Ok(event.wait_timeout(at_most)?.then_some(())))?;
        }
        py.detach(|| stream.synchronize()).or_raise()
    }

    /// Waits for all work on the device; Ctrl-C ends the wait for our own.
    pub(crate) fn synchronize_all(&self, py: Python<'_>) -> PyResult<()> {
        // First what can be interrupted: our own work.
        self.synchronize_stream(py, &self.own_stream)?;
        py.detach(|| self.inner.synchronize()).or_raise()
    }

    /// Whether it is simulated: its memory is no CUDA memory.
    pub(crate) fn is_simulated(&self) -> bool {
        self.inner.info().simulated.is_some()
    }
}

/// The one name of a device that has several.
fn canonical(name: &str) -> Cow<'_, str> {
    match name {
        "cuda" | "auto" => "cuda:0".into(),
        "sim" => "sim:pcie3-x16".into(),
        name => match name.strip_prefix("cuda:").map(str::parse::<u32>) {
            Some(Ok(ordinal)) => format!("cuda:{ordinal}").into(),
            _ => name.into(),
        },
    }
}

/// torch's current GPU if torch has one, else the first.
fn current_ordinal(py: Python<'_>) -> u32 {
    let ordinal = || {
        let Some(torch) = imported(py, intern!(py, "torch"))? else {
            return Ok(0);
        };
        let cuda = torch.getattr("cuda")?;
        if !cuda.call_method0("is_initialized")?.extract::<bool>()? {
            return Ok(0);
        }
        cuda.call_method0("current_device")?.extract::<u32>()
    };
    let ordinal: PyResult<u32> = ordinal();
    // A torch that is only half imported says nothing about the device.
    ordinal.unwrap_or(0)
}

#[pymethods]
impl Device {
    /// The name that opens it, such as `cuda:0` or `sim:h200`.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// What its vendor calls it.
    #[getter]
    fn model(&self) -> &str {
        &self.inner.info().name
    }

    /// Whether it is simulated.
    #[getter]
    fn simulated(&self) -> bool {
        self.is_simulated()
    }

    /// Its number among CUDA's devices; `None` if it is simulated.
    #[getter]
    fn ordinal(&self) -> Option<u32> {
        (!self.is_simulated()).then(|| self.inner.info().ordinal)
    }

    /// Free and total device memory in bytes.
    fn memory_info(&self) -> PyResult<(u64, u64)> {
        fork::refuse_child()?;
        let memory = self.inner.memory_info().or_raise()?;
        Ok((memory.free_bytes, memory.total_bytes))
    }

    /// Waits until all work on the device is done, that of other libraries too.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        self.synchronize_all(py)
    }

    /// A new stream.
    fn stream(&self, py: Python<'_>) -> PyResult<Stream> {
        fork::refuse_child()?;
        let stream = py.detach(|| self.inner.stream()).or_raise()?;
        Ok(Stream::new(self, stream))
    }

    /// Memory that it holds, in bytes: `pinned` is all pinned host memory, of which `idle_pinned` is kept for reuse and
    /// `express` is the ring for copies from ordinary memory; `registered` is pinned in place; `device` is on the device.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        fork::refuse_child()?;
        let stats = self.inner.stats();
        let values = PyDict::new(py);
        for (name, bytes) in [
            ("pinned", stats.pinned_bytes),
            ("idle_pinned", stats.idle_pinned_bytes),
            ("express", stats.express_bytes),
            ("registered", stats.registered_bytes),
            ("device", stats.device_bytes),
        ] {
            values.set_item(name, bytes)?;
        }
        Ok(values)
    }

    /// Frees pinned and device memory that is kept for reuse. Returns how many bytes.
    fn trim(&self, py: Python<'_>) -> PyResult<usize> {
        fork::refuse_child()?;
        Ok(py.detach(|| self.inner.trim()))
    }

    fn __repr__(&self) -> String {
        let simulated = if self.is_simulated() {
            ", simulated"
        } else {
            ""
        };
        format!(
            "<pinlane.Device {} ({}{simulated})>",
            self.name,
            self.model()
        )
    }

    fn __str__(&self) -> &str {
        &self.name
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other
            .cast::<Self>()
            .is_ok_and(|other| other.get().name == self.name)
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.name.hash(&mut hasher);
        hasher.finish()
    }
}

/// Opens a device, or returns it if it is open: a GPU (`"cuda"`, `"cuda:1"`, a number, a `torch.device`) or a simulated
/// one (`"sim:h200"`). Without a name: torch's current GPU, or the first.
///
/// A process that is forked after its parent has opened a device cannot use one. Start it with `multiprocessing`'s
/// method `"spawn"` or `"forkserver"`.
#[pyfunction(name = "device")]
#[pyo3(signature = (name=None))]
pub(crate) fn open_device(py: Python<'_>, name: Option<&Bound<'_, PyAny>>) -> PyResult<Device> {
    Device::of_any(py, name)
}

/// Names of the GPUs of this machine, such as `["cuda:0"]`; empty without one.
#[pyfunction]
pub(crate) fn device_names(py: Python<'_>) -> PyResult<Vec<String>> {
    let count = py.detach(|| match pinlane::cuda::Cuda::load() {
        Ok(cuda) => cuda.devices().map_or(0, |devices| devices.len()),
        Err(_) => 0,
    });
    Ok((0..count)
        .map(|ordinal| format!("cuda:{ordinal}"))
        .collect())
}

/// Limits the pinned memory of this process, in bytes. A limit below what is pinned already frees nothing, but no more
/// is pinned.
#[pyfunction]
pub(crate) fn set_pinned_limit(bytes: &Bound<'_, PyAny>) -> PyResult<()> {
    let given = bytes;
    let bytes = given.extract::<u64>().unwrap_or(0);
    if bytes == 0 {
        return Err(match given.hasattr("__index__")? {
            true => PyValueError::new_err(format!(
                "the limit must be at least one byte and fit into 64 bits, not {given}"
            )),
            false => PyTypeError::new_err(format!(
                "the limit must be a whole number of bytes, not {}",
                given.repr()?
            )),
        });
    }
    Budget::process().set_limit(bytes);
    Ok(())
}

/// How many bytes this process may pin.
#[pyfunction]
pub(crate) fn pinned_limit() -> PyResult<u64> {
    Budget::process().limit_bytes().or_raise()
}

/// How many bytes this process has pinned, including memory that is kept for reuse.
#[pyfunction]
pub(crate) fn pinned_bytes() -> u64 {
    Budget::process().in_use_bytes()
}

//! Batches of a dataset on a device, loaded ahead of the consumer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinlane::Normalize;
use pinlane::load::{
    Batch, DeviceTransform, Epoch, EpochState, Loader, LoaderConfig, LoaderError, OnError, Shard,
    Tail,
};
use pyo3::exceptions::{PyRuntimeError, PyStopIteration, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::batch_memory::{BatchPart, SharedBatch};
use crate::dataset::NativeDataset;
use crate::device::Device;
use crate::device_array::{ArrayMemory, DeviceArray};
use crate::dtype::Dtype;
use crate::errors::OrRaise;
use crate::fork::{self, LeakedInChild};
use crate::stream::simulated;

/// How often a wait for a batch looks for signals.
const BETWEEN_CHECKS: Duration = Duration::from_millis(50);

/// A field to normalise: its name, means, deviations, the elements of one channel that lie together, and the resulting
/// element type.
type NormalizedField = (String, Vec<f32>, Vec<f32>, usize, String);

/// The loader behind `pinlane.DataLoader`.
#[pyclass(frozen, module = "pinlane._native", name = "Loader")]
pub(crate) struct NativeLoader {
    device: Device,
    inner: LeakedInChild<Loader>,
}

#[pymethods]
impl NativeLoader {
    /// A loader of batches, from arguments that `DataLoader` has checked.
    #[new]
    #[pyo3(signature = (
        dataset, device, *, batch_size, shuffle, seed, drop_last, workers, prefetch, shard, skip_errors, normalize,
        pinned_bytes
    ))]
    #[allow(clippy::too_many_arguments)] // keywords, of one caller
    fn open(
        py: Python<'_>,
        dataset: &Bound<'_, NativeDataset>,
        device: Option<&Bound<'_, PyAny>>,
        batch_size: usize,
        shuffle: bool,
        seed: u64,
        drop_last: bool,
        workers: Option<usize>,
        prefetch: usize,
        shard: Option<(usize, usize)>,
        skip_errors: bool,
        normalize: Vec<NormalizedField>,
        pinned_bytes: usize,
    ) -> PyResult<Self> {
        let device = Device::of_any(py, device)?;
        let shard = match shard {
            Some((rank, world)) => Some(Shard::new(rank, world)),
            None => Shard::from_env().transpose(),
        };
        let shard = shard
            .transpose()
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let mut config = LoaderConfig::default()
            .batch(batch_size)
            .shuffle(shuffle)
            .seed(seed)
            .tail(if drop_last { Tail::Drop } else { Tail::Keep })
            .shard(shard.unwrap_or_else(Shard::whole))
            .workers(workers)
            .prefetch(prefetch)
            .pinned_bytes(pinned_bytes);
        if skip_errors {
            config = config.on_error(OnError::Skip);
        }
        for (field, mean, std, inner, to) in normalize {
            let to = Dtype::named(&to)?.in_files();
            let step = DeviceTransform::Normalize {
                normalize: Normalize::mean_std(&mean, &std, inner).or_raise()?,
                to: to
                    .ok_or_else(|| PyValueError::new_err("the resulting type is not supported"))?,
            };
            config = config.device_transform(field, step);
        }
        let dataset = Arc::clone(&dataset.get().inner);
        let inner = py
            .detach(|| Loader::new(&device.inner, dataset, config))
            .or_raise()?;
        Ok(Self {
            device,
            inner: inner.into(),
        })
    }

    /// Its device.
    #[getter]
    fn device(&self) -> Device {
        self.device.clone()
    }

    /// Number of batches in an epoch.
    fn __len__(&self) -> usize {
        self.inner.batches()
    }

    /// Threads that read samples.
    #[getter]
    fn workers(&self) -> usize {
        self.inner.workers()
    }

    /// Starts an epoch.
    fn epoch(&self, py: Python<'_>, number: u64) -> PyResult<LoaderEpoch> {
        fork::refuse_child()?;
        let epoch = py.detach(|| self.inner.epoch(number)).or_raise()?;
        Ok(LoaderEpoch::new(&self.device, epoch))
    }

    /// Resumes the epoch of a saved state.
    fn restore(&self, py: Python<'_>, state: &Bound<'_, PyDict>) -> PyResult<LoaderEpoch> {
        let state = self.state_of(state)?;
        let epoch = py.detach(|| self.inner.restore(&state)).or_raise()?;
        Ok(LoaderEpoch::new(&self.device, epoch))
    }

    /// How many batches would come after a saved state. Raises unless it is one of the same dataset and seed.
    fn batches_left(&self, state: &Bound<'_, PyDict>) -> PyResult<u64> {
        let state = self.state_of(state)?;
        let left = self.inner.batches_left(&state);
        left.or_raise()
    }

    /// How far the consumer is.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        fork::refuse_child()?;
        let state = self.inner.state();
        let dict = PyDict::new(py);
        for (name, value) in numbers(&state) {
            dict.set_item(name, value)?;
        }
        dict.set_item("shuffle", state.shuffle)?;
        dict.set_item("drop_last", state.tail == Tail::Drop)?;
        Ok(dict)
    }

    /// What it has done so far: batches, samples, bytes, and how long each stage took.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        fork::refuse_child()?;
        let stats = self.inner.stats();
        let dict = PyDict::new(py);
        for (name, value) in [
            ("batches", stats.batches),
            ("samples", stats.samples),
            ("skipped", stats.skipped),
            ("bytes", stats.bytes),
            ("consumer_wait_ns", stats.consumer_wait_ns),
            ("read_ns", stats.read_ns),
            ("slot_wait_ns", stats.slot_wait_ns),
            ("held_back_ns", stats.held_back_ns),
            ("copy_ns", stats.copy_ns),
            ("copy_bytes", stats.copy_bytes),
        ] {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }
}

impl NativeLoader {
    fn state_of(&self, saved: &Bound<'_, PyDict>) -> PyResult<EpochState> {
        let item = |name: &str| {
            let value = saved.get_item(name)?;
            value.ok_or_else(|| PyValueError::new_err(format!("the state has no {name:?}")))
        };
        fork::refuse_child()?;
        let invalid = |name: &str, value: &Bound<'_, PyAny>, expected: &str| {
            let found = value
                .repr()
                .map_or_else(|_| "this".to_owned(), |text| text.to_string());
            PyValueError::new_err(format!(
                "{name:?} of the state must be {expected}, not {found}"
            ))
        };
        let number = |name: &str| -> PyResult<u64> {
            let value = item(name)?;
            value
                .extract()
                .map_err(|_| invalid(name, &value, "a whole number from 0"))
        };
        let flag = |name: &str| -> PyResult<bool> {
            let value = item(name)?;
            value
                .extract()
                .map_err(|_| invalid(name, &value, "True or False"))
        };
        let mut state = self.inner.state();
        // A version that is too large is not ours either.
        state.version = number("version")?.try_into().unwrap_or(u32::MAX);
        state.epoch = number("epoch")?;
        state.batch = number("batch")?;
        state.seed = number("seed")?;
        state.samples = number("samples")?;
        state.batch_size = number("batch_size")?;
        state.rank = number("rank")?;
        state.world = number("world_size")?;
        // States of version 1 have none.
        state.start = match saved.contains("start")? {
            true => number("start")?,
            false => 0,
        };
        state.shuffle = flag("shuffle")?;
        state.tail = match flag("drop_last")? {
            true => Tail::Drop,
            false => Tail::Keep,
        };
        Ok(state)
    }
}

fn numbers(state: &EpochState) -> [(&'static str, u64); 9] {
    [
        ("version", u64::from(state.version)),
        ("epoch", state.epoch),
        ("batch", state.batch),
        ("seed", state.seed),
        ("samples", state.samples),
        ("batch_size", state.batch_size),
        ("rank", state.rank),
        ("world_size", state.world),
        ("start", state.start),
    ]
}

/// The batches of an epoch, in order.
#[pyclass(frozen, module = "pinlane._native", weakref)]
pub(crate) struct LoaderEpoch {
    device: Device,
    /// `None` once it is closed.
    epoch: Mutex<Option<Epoch>>,
}

#[pymethods]
impl LoaderEpoch {
    /// The next batch; ends the iteration after the last.
    fn next(&self, py: Python<'_>) -> PyResult<LoaderBatch> {
        fork::refuse_child()?;
        let is_ready = || match &*self.epoch() {
            Some(epoch) => epoch.wait_timeout(BETWEEN_CHECKS),
            None => true,
        };
        while !py.detach(is_ready) {
            py.check_signals()?;
        }
        let next = py.detach(|| self.epoch().as_mut().map(Iterator::next));
        match next {
            Some(Some(batch)) => {
                let batch = batch.map_err(|error| failed(py, error))?;
                Ok(LoaderBatch::new(&self.device, batch))
            }
            Some(None) => Err(PyStopIteration::new_err(())),
            None => Err(PyRuntimeError::new_err(
                "this iterator is closed: a newer one of the same loader has taken its place",
            )),
        }
    }

    /// Stops reading.
    fn close(&self, py: Python<'_>) {
        if fork::is_child() {
            return; // its threads are the parent's
        }
        // Without the interpreter: its threads may be waiting for it.
        py.detach(|| drop(self.epoch().take()));
    }
}

impl LoaderEpoch {
    fn new(device: &Device, epoch: Epoch) -> Self {
        Self {
            device: device.clone(),
            epoch: Mutex::new(Some(epoch)),
        }
    }

    /// Only without the interpreter: others hold it while they wait for a batch.
    fn epoch(&self) -> MutexGuard<'_, Option<Epoch>> {
        self.epoch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LoaderEpoch {
    fn drop(&mut self) {
        let epoch = self.epoch.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut epoch = epoch.take();
        if epoch.is_some() && !fork::is_child() {
            // As in `close`.
            let _ = Python::try_attach(|py| py.detach(|| drop(epoch.take())));
        }
        // At the end of the interpreter, and in a forked child, its threads cannot be waited for.
        std::mem::forget(epoch);
    }
}

/// An exception of the dataset's own, or ours.
fn failed(py: Python<'_>, error: LoaderError) -> PyErr {
    if let LoaderError::Sample { index, cause, .. } = &error
        && let Some(raised) = cause.cause().downcast_ref::<PyErr>()
    {
        let raised = raised.clone_ref(py);
        let note = format!("raised by sample {index} of the dataset");
        // A note that cannot be added must not hide the exception.
        let _ = raised.value(py).call_method1("add_note", (note,));
        return raised;
    }
    crate::errors::exception(&error.into())
}

/// A batch on the device.
#[pyclass(frozen, module = "pinlane._native")]
pub(crate) struct LoaderBatch {
    device: Device,
    shared: Arc<SharedBatch>,
}

#[pymethods]
impl LoaderBatch {
    /// Indices of its samples in the dataset.
    #[getter]
    fn indices(&self) -> Vec<usize> {
        self.shared.batch().indices().to_vec()
    }

    /// Number of samples, at the end, that only fill it up.
    #[getter]
    fn padding(&self) -> usize {
        self.shared.batch().padding()
    }

    /// Samples that were left out: index and reason.
    #[getter]
    fn skipped(&self) -> Vec<(usize, String)> {
        let skipped = self.shared.batch().skipped().iter();
        skipped
            .map(|sample| (sample.index, sample.reason.clone()))
            .collect()
    }

    /// Names and arrays of the fields. A variable field has two: all values, and where each sample starts in them, as
    /// `NAME_offsets`.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.named_arrays()?)
    }

    /// Names and DLPack capsules of the fields, for torch. The batch is lent to torch's stream: that waits for the batch,
    /// and once the last tensor is gone, the loader waits for that stream before it uses the memory again.
    fn capsules<'py>(&self, py: Python<'py>, stream: u64) -> PyResult<Bound<'py, PyList>> {
        if self.device.is_simulated() {
            return Err(simulated("a batch"));
        }
        fork::refuse_child()?;
        // SAFETY: torch keeps its streams.
        let stream = unsafe { pinlane::Stream::from_raw(&self.device.inner, stream) };
        self.shared.lend_to(&stream).or_raise()?;
        let list = PyList::empty(py);
        for (name, array) in self.named_arrays()? {
            list.append((name, array.capsule(py)?))?;
        }
        Ok(list)
    }
}

impl LoaderBatch {
    fn new(device: &Device, batch: Batch) -> Self {
        Self {
            device: device.clone(),
            shared: Arc::new(SharedBatch::new(batch, &device.inner)),
        }
    }

    fn named_arrays(&self) -> PyResult<Vec<(String, DeviceArray)>> {
        let mut arrays = Vec::new();
        for (number, field) in self.shared.batch().fields().enumerate() {
            let dtype = Dtype::of_field(field.dtype())?;
            let values = self.array(number, false, dtype, field.shape());
            arrays.push((field.name().to_owned(), values));
            if let Some(offsets) = field.offsets() {
                let starts = self.array(number, true, Dtype::I64, vec![offsets.len()]);
                arrays.push((format!("{}_offsets", field.name()), starts));
            }
        }
        Ok(arrays)
    }

    fn array(
        &self,
        field: usize,
        is_offsets: bool,
        dtype: Dtype,
        shape: Vec<usize>,
    ) -> DeviceArray {
        DeviceArray {
            device: self.device.clone(),
            dtype,
            shape,
            memory: Arc::new(ArrayMemory::Batch(BatchPart {
                batch: Arc::clone(&self.shared),
                field,
                is_offsets,
            })),
        }
    }
}

//! Pinned memory for NumPy arrays, and arrays page-locked in place.

use std::ffi::{c_int, c_void};
use std::slice;
use std::sync::{Mutex, PoisonError};

use pinlane::{ErrorKind, PinnedBuf, PointerKind, Registered, StableMemory, StableMemoryMut};
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::device::Device;
use crate::errors::{OrRaise, exception, invalid_input};
use crate::fork;
use crate::host_array::{HostArray, flat_bytes, span};

/// A block of pinned memory that speaks Python's buffer protocol. NumPy arrays lie in it and keep it.
#[pyclass(frozen, module = "pinlane")]
pub(crate) struct PinnedMemory {
    /// Taken by the drop.
    buffer: Option<PinnedBuf<u8>>,
    start: *mut u8,
    device: Device,
}

// SAFETY: a pointer into `buffer`, which is `Send` and `Sync`; Python's users of it order their accesses themselves.
unsafe impl Send for PinnedMemory {}
// SAFETY: as above.
unsafe impl Sync for PinnedMemory {}

#[pymethods]
impl PinnedMemory {
    /// Allocates so many bytes.
    #[new]
    #[pyo3(signature = (bytes, device=None))]
    fn open(py: Python<'_>, bytes: usize, device: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let device = Device::of_any(py, device)?;
        let allocate = || device.inner.pinned::<u8>(bytes);
        let mut buffer = match py.detach(allocate) {
            Err(error) if error.kind() == ErrorKind::OverBudget => {
                // Arrays of finished copies are dropped when the interpreter is attached again, behind this wait.
                py.detach(|| device.inner.synchronize()).or_raise()?;
                py.detach(allocate)
            }
            result => result,
        }
        .or_raise()?;
        Ok(Self {
            start: buffer.as_mut_ptr(),
            buffer: Some(buffer),
            device,
        })
    }

    /// The device that it was pinned for.
    #[getter]
    fn device(&self) -> Device {
        self.device.clone()
    }

    fn __len__(&self) -> usize {
        self.buffer.as_ref().map_or(0, |buffer| buffer.len())
    }

    /// # Safety
    /// Called by Python, with a view to fill.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let memory = slf.get();
        let start: *mut c_void = memory.start.cast();
        let len = memory.__len__() as ffi::Py_ssize_t;
        // SAFETY: the view keeps the object, whose memory does not move.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, len, 0, flags) };
        match filled {
            0 => Ok(()),
            _ => Err(PyErr::take(slf.py()).unwrap_or_else(|| PyBufferError::new_err("no buffer"))),
        }
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            // Other libraries copy from NumPy arrays on streams that we do not know.
            self.device.inner.release_when_idle(buffer);
        }
    }
}

/// The bytes of an array of the user's, to register.
struct UserMemory(HostArray);

// SAFETY: its owner keeps the memory where it is: a memoryview, whose object cannot move or shrink it, or a tensor that
// nobody else has. That others write to it is for the user to order, as for every array.
unsafe impl StableMemory for UserMemory {
    type Element = u8;

    fn parts(&self) -> (*const u8, usize) {
        (self.0.start(), self.0.bytes())
    }
}

// SAFETY: as above; the array is writable.
unsafe impl StableMemoryMut for UserMemory {
    fn parts_mut(&mut self) -> (*mut u8, usize) {
        (self.0.start(), self.0.bytes())
    }
}

/// An array that `pin` has page-locked in place, until `unpin` or the end of a `with` block.
///
/// Dropping this object unpins the array too, but later: once all work on the device is done.
#[pyclass(frozen, module = "pinlane")]
pub(crate) struct Pinned {
    array: Py<PyAny>,
    device: Device,
    registered: Mutex<Option<Registered<UserMemory>>>,
}

#[pymethods]
impl Pinned {
    /// The array.
    #[getter]
    fn array(&self, py: Python<'_>) -> Py<PyAny> {
        self.array.clone_ref(py)
    }

    /// Whether it is still page-locked.
    #[getter]
    fn is_pinned(&self) -> bool {
        self.registered().is_some()
    }

    /// Waits until all work on the device is done, then unlocks the pages. Does nothing if they are unlocked.
    fn unpin(&self, py: Python<'_>) -> PyResult<()> {
        if !self.is_pinned() {
            return Ok(());
        }
        // Copies of other libraries may be in flight.
        self.device.synchronize_all(py)?;
        let Some(registered) = self.registered().take() else {
            return Ok(()); // by another thread
        };
        let unregister = || registered.into_inner().map_err(|failed| failed.error);
        py.detach(unregister).or_raise()?;
        Ok(())
    }

    fn __enter__(&self, py: Python<'_>) -> Py<PyAny> {
        self.array(py)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        if fork::is_child() {
            return Ok(()); // nothing is page-locked here
        }
        self.unpin(py)
    }
}

impl Pinned {
    fn registered(&self) -> std::sync::MutexGuard<'_, Option<Registered<UserMemory>>> {
        self.registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(registered) = self.registered().take() {
            self.device.inner.release_when_idle(registered);
        }
    }
}

/// Page-locks an array in place, so that copies from and to it are direct, and asynchronous where the caller wants that.
///
/// The array stays pinned as long as the result is kept, or for a block: `with pin(array):`.
#[pyfunction]
#[pyo3(signature = (array, *, device=None))]
pub(crate) fn pin(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<Pinned> {
    let memory = HostArray::target(&flat_bytes(array)?, "the array")?.kept(py)?;
    if memory.bytes() == 0 {
        return Err(PyValueError::new_err(
            "an array without elements cannot be pinned",
        ));
    }
    let device = Device::of_any(py, device)?;
    let registered = py
        .detach(|| register(&device.inner, UserMemory(memory)))
        .map_err(|error| match is_already_registered(&error) {
            true => invalid_input("the array, or a part of it, is pinned already"),
            false => exception(&error),
        })?;
    Ok(Pinned {
        array: array.clone().unbind(),
        device,
        registered: Mutex::new(Some(registered)),
    })
}

/// Page-locks memory, also memory whose last registration was dropped and waits for its release.
fn register(
    device: &pinlane::Device,
    memory: UserMemory,
) -> pinlane::Result<Registered<UserMemory>> {
    match device.register(memory) {
        Err(failed) if is_already_registered(&failed.error) => {
            device.synchronize()?; // releases what waits for it
            let registered = device.register(failed.memory);
            registered.map_err(|failed| failed.error)
        }
        registered => registered.map_err(|failed| failed.error),
    }
}

fn is_already_registered(error: &pinlane::Error) -> bool {
    use pinlane::driver::ErrorKind::AlreadyRegistered;
    matches!(error, pinlane::Error::Driver(error) if error.kind == AlreadyRegistered)
}

/// Whether an array lies in page-locked memory of the device. `False` for an array without elements.
#[pyfunction]
#[pyo3(signature = (array, *, device=None))]
pub(crate) fn is_pinned(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<bool> {
    let (start, bytes) = span(array)?;
    if bytes == 0 {
        return Ok(false);
    }
    is_page_locked(&Device::of_any(py, device)?, start, bytes)
}

/// Whether the first and the last of these bytes are page-locked.
pub(crate) fn is_page_locked(device: &Device, start: *mut u8, bytes: usize) -> PyResult<bool> {
    let is_locked = |byte: *mut u8| -> PyResult<bool> {
        // SAFETY: only the address is used.
        let kind = device
            .inner
            .pointer_kind(unsafe { slice::from_raw_parts(byte, 1) });
        Ok(matches!(
            kind.or_raise()?,
            PointerKind::Pinned | PointerKind::Registered
        ))
    };
    Ok(bytes > 0 && is_locked(start)? && is_locked(start.wrapping_add(bytes - 1))?)
}

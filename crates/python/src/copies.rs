//! Copies between arrays on the host and on a device.

use std::collections::HashMap;

use pinlane::interop::LentPinned;
use pinlane::{F32ToBf16, F32ToF16, Stream, U8ToF32};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::device::Device;
use crate::device_array::DeviceArray;
use crate::dtype::{Dtype, shape_text};
use crate::errors::OrRaise;
use crate::foreign_device_array::DeviceView;
use crate::host_array::{HostArray, as_numpy, class_name, is_torch_tensor};
use crate::pinned::is_page_locked;
use crate::stream;

/// Copies an array to a device, at nearly the speed of pinned memory.
///
/// `src` is a NumPy array, a CPU tensor, a buffer, or speaks DLPack. A tensor becomes a torch tensor, everything else
/// a `DeviceArray`; `out`, an array on the device, is filled instead. The copy is on `stream`: by default on the
/// current stream of the library that `out` belongs to.
///
/// `dtype` converts on the way. Without it an `out` of another type is filled if no element can overflow or lose its
/// fraction or sign: integers become wider ones or floats, floats become floats of any width, rounded.
///
/// Returns when `src` may be changed. With `blocking=False` and `src` in pinned memory it returns at once: then `src`
/// must not change until the stream has done the copy. Threads that copy into the same `out` must take turns: their
/// copies mix otherwise.
#[pyfunction]
#[pyo3(signature = (src, device=None, *, out=None, stream=None, dtype=None, blocking=true))]
pub(crate) fn to_device<'py>(
    py: Python<'py>,
    src: &Bound<'py, PyAny>,
    device: Option<&Bound<'py, PyAny>>,
    out: Option<Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
    dtype: Option<&Bound<'py, PyAny>>,
    blocking: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype = dtype.map(Dtype::of_any).transpose()?;
    let Some(out) = out else {
        let out = new_target(py, src, device, stream, dtype)?;
        upload(py, src, &target_view(&out)?, stream, blocking, dtype)?;
        return Ok(out);
    };
    let target = target_view(&out)?;
    if let Some(device) = device
        && let device = Device::of_any(py, Some(device))?
        && device.name != target.device.name
    {
        let message = format!("out is on {}, not on {}", target.device.name, device.name);
        return Err(PyValueError::new_err(message));
    }
    if let Some(dtype) = dtype
        && dtype != target.dtype
    {
        let message = format!("out has elements of {}, but dtype is {dtype}", target.dtype);
        return Err(PyValueError::new_err(message));
    }
    upload(py, src, &target, stream, blocking, dtype)?;
    tell_torch(&out)?;
    Ok(out)
}

fn target_view(out: &Bound<'_, PyAny>) -> PyResult<DeviceView> {
    let target = DeviceView::of_any(out)?;
    target.ok_or_else(|| {
        let class = class_name(out);
        PyTypeError::new_err(format!("out must be an array on a device, not {class}"))
    })
}

/// Counts a change of the user's tensor, which torch compares with what its graph has saved.
pub(crate) fn tell_torch(out: &Bound<'_, PyAny>) -> PyResult<()> {
    if is_torch_tensor(out)? {
        let module = out.py().import(intern!(out.py(), "pinlane._torch"))?;
        module.call_method1(intern!(out.py(), "written"), (out,))?;
    }
    Ok(())
}

/// Copies an array on the host into one on a device, as `to_device` with `out`. `None` for the stream is the current
/// stream of the library that `out` belongs to.
#[pyfunction]
#[pyo3(signature = (src, out, stream=None, blocking=true))]
pub(crate) fn copy_into<'py>(
    py: Python<'py>,
    src: &Bound<'py, PyAny>,
    out: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, PyAny>>,
    blocking: bool,
) -> PyResult<()> {
    upload(py, src, &target_view(out)?, stream, blocking, None)
}

/// Copies an array on the host into one on a device with the driver's own copy.
pub(crate) fn by_driver(
    py: Python<'_>,
    src: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    stream: &Stream,
) -> PyResult<()> {
    let target = target_view(out)?;
    let source = HostArray::source(src)?;
    check_shapes(&source.shape, &target.shape)?;
    if source.dtype != target.dtype {
        return Err(PyValueError::new_err(format!(
            "out has elements of {}, but src has elements of {}",
            target.dtype, source.dtype
        )));
    }
    let place = target.slice_mut()?;
    // SAFETY: as in `upload`.
    let bytes = unsafe { source.as_slice() };
    py.detach(|| stream.driver_copy_to_device(bytes, place))
        .or_raise()
}

/// Memory for a copy of `src` on the device: torch's for tensors, else ours.
fn new_target<'py>(
    py: Python<'py>,
    src: &Bound<'py, PyAny>,
    device: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
    dtype: Option<Dtype>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(view) = DeviceView::of_any(src)? {
        let message = format!("the array is on {} already", view.device.name);
        return Err(PyTypeError::new_err(message));
    }
    let device = match (device, stream.map(|stream| stream.cast::<stream::Stream>())) {
        (None, Some(Ok(stream))) => stream.get().device.clone(),
        _ => Device::of_any(py, device)?,
    };
    if is_torch_tensor(src)? && !device.is_simulated() {
        let stream = stream
            .map(|stream| stream::of_any(&device, stream))
            .transpose()?;
        let handle = stream.map(|stream| pinlane::raw::stream_handle(&stream));
        let allocate = py
            .import(intern!(py, "pinlane._torch"))?
            .getattr("empty_on_device")?;
        let ordinal = device.inner.info().ordinal;
        return allocate.call1((src, ordinal, dtype.map(Dtype::name), handle));
    }
    let source = HostArray::source(src)?;
    let dtype = dtype.unwrap_or(source.dtype);
    let array = DeviceArray::new(py, &device, dtype, source.shape.clone())?;
    Ok(Bound::new(py, array)?.into_any())
}

/// Copies. `wanted` is the element type that the user asked for.
fn upload(
    py: Python<'_>,
    src: &Bound<'_, PyAny>,
    target: &DeviceView,
    stream: Option<&Bound<'_, PyAny>>,
    blocking: bool,
    wanted: Option<Dtype>,
) -> PyResult<()> {
    let source = HostArray::source(src)?;
    check_shapes(&source.shape, &target.shape)?;
    if wanted.is_none() && !source.dtype.may_become(target.dtype) {
        return Err(PyTypeError::new_err(format!(
            "not every {} fits into the {} of out; pass dtype=\"{1}\" to convert all the same",
            source.dtype, target.dtype
        )));
    }
    let stream = match stream {
        Some(stream) => stream::of_any(&target.device, stream)?,
        None => target.stream().clone(),
    };
    target.wait_for_others(py, &stream)?;
    if source.dtype != target.dtype {
        upload_converting(py, src, &source, target, &stream)?;
    } else if !blocking && is_page_locked(&target.device, source.start(), source.bytes())? {
        return upload_asynchronously(py, source.kept(py)?, target, &stream);
    } else {
        let place = target.slice_mut()?;
        // SAFETY: that no other thread changes the array during the copy is for the user to see to, as with NumPy itself.
        let bytes = unsafe { source.as_slice() };
        py.detach(|| stream.copy_to_device(bytes, place))
            .or_raise()?;
    }
    if target.must_wait {
        target.device.synchronize_stream(py, &stream)?;
    }
    Ok(())
}

/// Submits the copy and leaves the array to the transfer, which keeps it until it is done.
fn upload_asynchronously(
    py: Python<'_>,
    source: HostArray,
    target: &DeviceView,
    stream: &Stream,
) -> PyResult<()> {
    let place = target.slice_mut()?;
    let (start, bytes) = (source.start(), source.bytes());
    // SAFETY: page-locked, kept by its owner; the user has promised not to change it.
    let lent = unsafe { LentPinned::new(&target.device.inner, start, bytes, source) };
    py.detach(|| {
        stream
            .upload(lent, place)
            .map(drop)
            .map_err(|failed| failed.error)
    })
    .or_raise()?;
    if target.must_wait {
        target.device.synchronize_stream(py, stream)?;
    }
    Ok(())
}

/// Converts on the way where the library can, else with NumPy or torch first.
fn upload_converting(
    py: Python<'_>,
    src: &Bound<'_, PyAny>,
    source: &HostArray,
    target: &DeviceView,
    stream: &Stream,
) -> PyResult<()> {
    let place = target.slice_mut()?;
    // SAFETY: as in `upload`.
    let bytes = unsafe { source.as_slice() };
    let aligned = bytes.as_ptr().addr().is_multiple_of(source.dtype.bytes());
    let copied = match (source.dtype, target.dtype) {
        (Dtype::F32, Dtype::F16) if aligned => {
            py.detach(|| stream.upload_as(F32ToF16, bytemuck::cast_slice(bytes), place.cast()))
        }
        (Dtype::F32, Dtype::Bf16) if aligned => {
            py.detach(|| stream.upload_as(F32ToBf16, bytemuck::cast_slice(bytes), place.cast()))
        }
        (Dtype::U8, Dtype::F32) => {
            let exact = U8ToF32 {
                scale: 1.0,
                offset: 0.0,
            };
            py.detach(|| stream.upload_as(exact, bytes, place.cast()))
        }
        _ => {
            let converted = converted(py, src, target.dtype)?;
            let source = HostArray::source(&converted)?;
            // SAFETY: a copy that nobody else has.
            let bytes = unsafe { source.as_slice() };
            py.detach(|| stream.copy_to_device(bytes, place))
        }
    };
    copied.or_raise()
}

/// A copy with other elements.
fn converted<'py>(
    py: Python<'py>,
    src: &Bound<'py, PyAny>,
    dtype: Dtype,
) -> PyResult<Bound<'py, PyAny>> {
    if is_torch_tensor(src)? {
        return src.call_method1("to", (py.import("torch")?.getattr(dtype.name())?,));
    }
    let numpy = py.import("numpy")?;
    let numpy_dtype = py
        .import("pinlane._numpy")?
        .call_method1("dtype_named", (dtype.name(),))?;
    numpy.call_method1("asarray", (as_numpy(src)?, numpy_dtype))
}

/// Copies an array on a device into host memory: `out`, or a new NumPy array; a torch tensor into a new tensor.
///
/// Returns when the bytes have arrived. The copy is on `stream`: by default on the current stream of the library that
/// `src` belongs to. `out` must have the element type of `src`.
#[pyfunction]
#[pyo3(signature = (src, *, out=None, stream=None))]
pub(crate) fn to_host<'py>(
    py: Python<'py>,
    src: &Bound<'py, PyAny>,
    out: Option<Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let source = DeviceView::of_any(src)?;
    let source = source.ok_or_else(|| {
        let class = class_name(src);
        PyTypeError::new_err(format!("an array on a device is needed, not {class}"))
    })?;
    let is_users = out.is_some();
    let out = match out {
        Some(out) => out,
        None if is_torch_tensor(src)? => py
            .import("pinlane._torch")?
            .call_method1("empty_on_host", (src,))?,
        None => new_host_array(py, &source)?,
    };
    let target = HostArray::target(&out, "out")?;
    check_shapes(&source.shape, &target.shape)?;
    if source.dtype != target.dtype {
        return Err(PyValueError::new_err(format!(
            "out has elements of {}, but the array on the device has elements of {}",
            target.dtype, source.dtype
        )));
    }
    let stream = match stream {
        Some(stream) => stream::of_any(&source.device, stream)?,
        None => source.stream().clone(),
    };
    source.wait_for_others(py, &stream)?;
    // SAFETY: that no other thread uses the array during the copy is for the user to see to.
    let bytes = unsafe { target.as_mut_slice() };
    py.detach(|| stream.copy_to_host(source.slice(), bytes))
        .or_raise()?;
    if is_users {
        tell_torch(&out)?;
    }
    Ok(out)
}

/// A NumPy array for a copy of this one.
fn new_host_array<'py>(py: Python<'py>, source: &DeviceView) -> PyResult<Bound<'py, PyAny>> {
    let arguments = (PyTuple::new(py, &source.shape)?, source.dtype.name());
    if source.dtype.is_of_numpy() {
        // Without Python code in between. That is faster, and Python before 3.14 ends daemon threads that run such code
        // at its own end by unwinding them, which aborts the process if native code is below it.
        let empty = py
            .import(intern!(py, "numpy"))?
            .getattr(intern!(py, "empty"))?;
        return empty.call1(arguments);
    }
    let new = py.import("pinlane._numpy")?.getattr("pageable")?;
    new.call1(arguments)
}

/// Copies many arrays to a device at once: thousands of small ones cost little more than one large one.
///
/// `out` is a list with an array for each source, all on one device, of the same shapes and element types. Returns when
/// the sources may be changed.
#[pyfunction]
#[pyo3(signature = (sources, out, *, stream=None))]
pub(crate) fn upload_many<'py>(
    py: Python<'py>,
    sources: &Bound<'py, PyAny>,
    out: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, PyAny>>,
) -> PyResult<()> {
    let sources = listed("sources", sources, HostArray::source)?;
    let targets = listed("out", out, |target| {
        DeviceView::of_any(target)?.ok_or_else(|| {
            let class = class_name(target);
            PyTypeError::new_err(format!("an array on a device is needed, not {class}"))
        })
    })?;
    if sources.len() != targets.len() {
        return Err(PyValueError::new_err(format!(
            "sources has {} arrays, but out has {}",
            sources.len(),
            targets.len()
        )));
    }
    let Some(first) = targets.first() else {
        return Ok(());
    };
    for (number, (source, target)) in sources.iter().zip(&targets).enumerate() {
        let wrong = if source.shape != target.shape {
            let (source, target) = (shape_text(&source.shape), shape_text(&target.shape));
            format!("has the shape {target}, but sources[{number}] has the shape {source}")
        } else if source.dtype != target.dtype {
            let (source, target) = (source.dtype, target.dtype);
            format!("has elements of {target}, but sources[{number}] has elements of {source}")
        } else if target.device.name != first.device.name {
            let (this, first) = (&target.device.name, &first.device.name);
            format!("is on {this}, but out[0] is on {first}")
        } else {
            continue;
        };
        return Err(PyValueError::new_err(format!("out[{number}] {wrong}")));
    }
    let stream = match stream {
        Some(stream) => stream::of_any(&first.device, stream)?,
        None => first.stream().clone(),
    };
    let pieces: Vec<_> = sources
        .iter()
        .zip(&targets)
        // SAFETY: as in `upload`.
        .map(|(source, target)| Ok((unsafe { source.as_slice() }, target.slice_mut()?)))
        .collect::<PyResult<_>>()?;
    // Libraries with other streams wait for this one, and it for them.
    let mut others: HashMap<u64, &Stream> = HashMap::new();
    for other in targets.iter().filter_map(DeviceView::library_stream) {
        others.insert(pinlane::raw::stream_handle(other), other);
    }
    others.remove(&pinlane::raw::stream_handle(&stream));
    let device = &first.device;
    let copy = || {
        let wait = |waiter: &Stream, other: &Stream| {
            let event = device.inner.event()?;
            other.record(&event)?;
            waiter.wait(&event)
        };
        others.values().try_for_each(|other| wait(&stream, other))?;
        stream.upload_many(pieces)?;
        others.values().try_for_each(|other| wait(other, &stream))
    };
    py.detach(copy).or_raise()?;
    if targets.iter().any(|target| target.must_wait) {
        device.synchronize_stream(py, &stream)?;
    }
    Ok(())
}

/// The items of a list of the user's, which errors call `name`.
fn listed<'py, T>(
    name: &str,
    list: &Bound<'py, PyAny>,
    item: impl Fn(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    let py = list.py();
    let Ok(items) = list.try_iter() else {
        let class = class_name(list);
        let message = format!("{name} must be a list of arrays, not {class}");
        return Err(PyTypeError::new_err(message));
    };
    let item = |(number, value): (usize, PyResult<Bound<'py, PyAny>>)| {
        item(&value?).map_err(|error| {
            let class = error.get_type(py);
            // Others may need more than a text.
            if !class.is(py.get_type::<PyTypeError>()) && !class.is(py.get_type::<PyValueError>()) {
                return error;
            }
            let text = format!("{name}[{number}]: {}", error.value(py));
            PyErr::from_type(class, text)
        })
    };
    items.enumerate().map(item).collect()
}

fn check_shapes(source: &[usize], target: &[usize]) -> PyResult<()> {
    if source == target {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "out has the shape {}, but src has the shape {}",
        shape_text(target),
        shape_text(source)
    )))
}

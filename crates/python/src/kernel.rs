//! CUDA C compiled at run time, and launches of its kernels.

use pinlane::driver::DevicePtr;
use pinlane::driver::ErrorKind::{InvalidValue, NotFound};
use pinlane::kernel::{AnyParams, AnyValues, CompileOptions, PtxParam};
use pinlane::{ErrorKind, LaunchShape, Stream};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::device::Device;
use crate::errors::{OrRaise, exception, invalid_input, not_supported};
use crate::foreign_device_array::DeviceView;
use crate::fork::{self, LeakedInChild};
use crate::host_array::class_name;
use crate::kernel_scalar::ScalarValue;
use crate::stream;

/// CUDA C, compiled and loaded. `kernel(name)` returns its kernels.
#[pyclass(frozen, module = "pinlane")]
pub(crate) struct Module {
    device: Device,
    inner: LeakedInChild<pinlane::Module>,
}

#[pymethods]
impl Module {
    /// The device that it was compiled for.
    #[getter]
    fn device(&self) -> Device {
        self.device.clone()
    }

    /// The compiled source, as PTX.
    #[getter]
    fn ptx(&self) -> &str {
        self.inner.ptx().map_or("", |ptx| &ptx.text)
    }

    /// The compiler's warnings.
    #[getter]
    fn log(&self) -> &str {
        self.inner.ptx().map_or("", |ptx| &ptx.log)
    }

    /// A kernel, by its name in the source. A simulated GPU runs only those that are built into Pinlane.
    fn kernel(&self, name: &str) -> PyResult<Kernel> {
        fork::refuse_child()?;
        let inner = match self.inner.kernel::<AnyParams>(name) {
            Err(error) if error.kind() == ErrorKind::NotSupported && self.device.is_simulated() => {
                return Err(not_supported(&format!(
                    "kernel {name} cannot run on {}: a simulated GPU executes no CUDA code. Use a real one",
                    self.device.name
                )));
            }
            Err(pinlane::Error::Driver(error)) if error.kind == NotFound => {
                return Err(invalid_input(&format!(
                    "there is no kernel `{name}` in the source"
                )));
            }
            found => found.or_raise()?,
        };
        let params = self.inner.ptx().and_then(|ptx| ptx.params(name));
        let params = params.ok_or_else(|| {
            not_supported(&format!(
                "the parameters of kernel {name} are not understood"
            ))
        })?;
        Ok(Kernel {
            name: name.to_owned(),
            device: self.device.clone(),
            inner: inner.into(),
            params,
        })
    }

    fn __repr__(&self) -> String {
        format!("<pinlane.Module on {}>", self.device.name)
    }
}

/// A kernel of a module. Call it to launch it: `kernel(grid, block, *args, stream=None, shared_bytes=0)`.
#[pyclass(frozen, module = "pinlane")]
pub(crate) struct Kernel {
    name: String,
    device: Device,
    inner: LeakedInChild<pinlane::Kernel<AnyParams>>,
    params: Vec<PtxParam>,
}

#[pymethods]
impl Kernel {
    /// Its name in the source.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Its device.
    #[getter]
    fn device(&self) -> Device {
        self.device.clone()
    }

    /// Launches it. See `pinlane.launch`.
    #[pyo3(signature = (grid, block, *args, stream=None, shared_bytes=0))]
    fn __call__(
        &self,
        py: Python<'_>,
        grid: &Bound<'_, PyAny>,
        block: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        stream: Option<&Bound<'_, PyAny>>,
        shared_bytes: u32,
    ) -> PyResult<()> {
        let shape = LaunchShape {
            grid: lens("grid", grid)?,
            block: lens("block", block)?,
            shared_bytes,
        };
        self.launch(py, shape, args, stream)
    }

    fn __repr__(&self) -> String {
        format!("<pinlane.Kernel {} on {}>", self.name, self.device.name)
    }
}

impl Kernel {
    fn launch(
        &self,
        py: Python<'_>,
        shape: LaunchShape,
        args: &Bound<'_, PyTuple>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        fork::refuse_child()?;
        // CuPy's callers pass one tuple.
        let tuple = match args.len() {
            1 => args.get_item(0)?.cast_into::<PyTuple>().ok(),
            _ => None,
        };
        let args = tuple.as_ref().unwrap_or(args);
        if args.len() != self.params.len() {
            return Err(PyTypeError::new_err(format!(
                "kernel {} takes {} arguments, not {}",
                self.name,
                self.params.len(),
                args.len()
            )));
        }
        let args: Vec<LaunchArgument> = args
            .iter()
            .zip(&self.params)
            .enumerate()
            .map(|(number, (value, &param))| LaunchArgument::new(self, number, &value, param))
            .collect::<PyResult<_>>()?;
        let stream = match stream {
            Some(stream) => stream::of_any(&self.device, stream)?,
            None => default_stream(&self.device, &args),
        };
        for arg in &args {
            if let LaunchArgument::Array(view) = arg {
                view.wait_for_others(py, &stream)?;
            }
        }
        let values = args
            .iter()
            .map(LaunchArgument::value)
            .collect::<PyResult<AnyValues<'_>>>()?;
        // SAFETY: the values fit the parameters that the compiler declared. That the kernel stays within the
        // arrays is for its author to see to, as with every kernel.
        py.detach(|| unsafe { stream.launch(&self.inner, shape, values) })
            .map_err(|error| match &error {
                // Without the name of the driver's call.
                pinlane::Error::Driver(error) if error.kind == InvalidValue => {
                    let reason = match error.detail.is_empty() {
                        true => error.kind.to_string(),
                        false => error.detail.to_string(),
                    };
                    invalid_input(&format!("cannot launch {}: {reason}", self.name))
                }
                _ => exception(&error),
            })
    }
}

/// The stream that the arrays' library uses now: of the first one that has one.
fn default_stream(device: &Device, args: &[LaunchArgument]) -> Stream {
    let foreign = args.iter().find_map(|arg| match arg {
        LaunchArgument::Array(view) => view.library_stream(),
        _ => None,
    });
    foreign.unwrap_or(&device.own_stream).clone()
}

/// An argument, checked against its parameter.
enum LaunchArgument {
    Array(Box<DeviceView>),
    Scalar(ScalarValue),
    Null,
}

impl LaunchArgument {
    fn new(
        kernel: &Kernel,
        number: usize,
        value: &Bound<'_, PyAny>,
        param: PtxParam,
    ) -> PyResult<Self> {
        let found = match ScalarValue::of_python(value, param) {
            Some(scalar) => scalar.map(Self::Scalar),
            None if value.is_none() => Ok(Self::Null),
            None => match DeviceView::of_any(value)? {
                Some(view) if view.device.name == kernel.device.name => {
                    Ok(Self::Array(Box::new(view)))
                }
                Some(view) => Err(format!(
                    "is on {}, the kernel on {}",
                    view.device.name, kernel.device.name
                )),
                None => ScalarValue::of_numpy(value, param)?.map(Self::Scalar),
            },
        };
        let found = found.and_then(|found| match (&found, param) {
            (Self::Scalar(_), _) | (_, PtxParam::Integer(8)) => Ok(found),
            _ => Err("is a pointer, the parameter is not".to_owned()),
        });
        found.map_err(|reason| {
            PyTypeError::new_err(format!("argument {number} of {}: {reason}", kernel.name))
        })
    }

    /// What the launch passes. Memory counts as written, unless it is read-only.
    fn value(&self) -> PyResult<Box<dyn pinlane::kernel::Argument<'_> + Send + '_>> {
        Ok(match self {
            Self::Array(view) if view.is_read_only() => Box::new(view.slice()),
            Self::Array(view) => Box::new(view.slice_mut()?),
            Self::Scalar(scalar) => scalar.argument(),
            Self::Null => Box::new(DevicePtr(0)),
        })
    }
}

/// `grid` or `block`: a number, or up to three.
fn lens(what: &str, value: &Bound<'_, PyAny>) -> PyResult<[u32; 3]> {
    let invalid = || {
        PyValueError::new_err(format!(
            "{what} must be one to three numbers from 1, not {}",
            value
                .repr()
                .map_or_else(|_| "this".to_owned(), |text| text.to_string())
        ))
    };
    let given: Vec<u32> = match value.extract::<u32>() {
        Ok(len) => vec![len],
        Err(_) => value.extract().map_err(|_| invalid())?,
    };
    let mut lens = [1; 3];
    if given.is_empty() || given.len() > 3 || given.contains(&0) {
        return Err(invalid());
    }
    lens[..given.len()].copy_from_slice(&given);
    Ok(lens)
}

/// Compiles CUDA C for the device and loads it, as `pinlane.compile` does once it has found the compiler.
#[pyfunction]
#[pyo3(signature = (source, device, options))]
pub(crate) fn compile_source(
    py: Python<'_>,
    source: &str,
    device: Option<&Bound<'_, PyAny>>,
    options: Vec<String>,
) -> PyResult<Module> {
    let device = Device::of_any(py, device)?;
    let flags = |all: CompileOptions, flag: &String| all.flag(flag);
    let options = options.iter().fold(CompileOptions::default(), flags);
    let inner = py
        .detach(|| pinlane::Module::from_source_with(&device.inner, source, &options))
        .or_raise()?;
    Ok(Module {
        device,
        inner: inner.into(),
    })
}

/// Launches a kernel in stream order, behind every earlier use of its arrays that Pinlane knows.
///
/// `grid` and `block` are numbers or tuples of up to three. An argument is an array on the device (of Pinlane, torch,
/// CuPy, JAX or Numba), `None` for a null pointer, or a scalar. A Python number takes the type of the kernel's
/// parameter, if it fits; a NumPy scalar must have exactly that type. By default the kernel runs on the current stream
/// of the library that the first array belongs to, for Pinlane's arrays on the device's own stream.
///
/// The kernel must stay within its arrays. Nothing can check that.
#[pyfunction]
#[pyo3(signature = (kernel, grid, block, *args, stream=None, shared_bytes=0))]
pub(crate) fn launch(
    py: Python<'_>,
    kernel: &Bound<'_, PyAny>,
    grid: &Bound<'_, PyAny>,
    block: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    stream: Option<&Bound<'_, PyAny>>,
    shared_bytes: u32,
) -> PyResult<()> {
    let kernel = kernel.cast::<Kernel>().map_err(|_| {
        let class = class_name(kernel);
        PyTypeError::new_err(format!(
            "kernel must be what Module.kernel returned, not {class}"
        ))
    })?;
    kernel
        .get()
        .__call__(py, grid, block, args, stream, shared_bytes)
}

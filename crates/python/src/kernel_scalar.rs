//! Numbers as arguments of kernels.

use pinlane::kernel::{Argument, PtxParam};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

/// A number, in the type of its parameter. CUDA reads as many bytes of it as the parameter has, so the small ones are
/// in the low bytes of larger integers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScalarValue {
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
}

/// Why a value does not fit its parameter.
type Refused = String;

impl ScalarValue {
    /// A Python number, converted to the parameter's type. `None` for anything else.
    pub(crate) fn of_python(
        value: &Bound<'_, PyAny>,
        param: PtxParam,
    ) -> Option<Result<Self, Refused>> {
        if value.is_exact_instance_of::<PyBool>() || value.is_exact_instance_of::<PyInt>() {
            return Some(match param {
                PtxParam::Integer(bytes) => Self::of_integer(value, bytes),
                PtxParam::Float(bytes) => match value.extract() {
                    Ok(number) => Ok(Self::of_float(number, bytes)),
                    Err(_) => Err(format!("{value} is too large")),
                },
                PtxParam::Bytes(bytes) => Err(opaque(bytes)),
            });
        }
        let number = value.cast_exact::<PyFloat>().ok()?.value();
        Some(match param {
            PtxParam::Float(bytes) => Ok(Self::of_float(number, bytes)),
            PtxParam::Integer(_) => Err(format!("{number} is a float, the parameter an integer")),
            PtxParam::Bytes(bytes) => Err(opaque(bytes)),
        })
    }

    fn of_integer(value: &Bound<'_, PyAny>, bytes: usize) -> Result<Self, Refused> {
        let bits = bytes as u32 * 8;
        let unsigned = value.extract::<u64>().ok();
        let signed = value.extract::<i64>().ok();
        let is_small = |number: u64| bits >= 64 || number >> bits == 0;
        let is_small_negative = |number: i64| bits >= 64 || number >= -1 << (bits - 1);
        match (unsigned, signed) {
            (Some(number), _) if is_small(number) => Ok(match bytes {
                8 => Self::U64(number),
                _ => Self::U32(number as u32),
            }),
            (None, Some(number)) if is_small_negative(number) => Ok(match bytes {
                8 => Self::I64(number),
                _ => Self::I32(number as i32),
            }),
            _ => Err(format!("{value} does not fit into {bits} bits")),
        }
    }

    fn of_float(number: f64, bytes: usize) -> Self {
        match bytes {
            8 => Self::F64(number),
            _ => Self::F32(number as f32),
        }
    }

    /// A NumPy scalar, or an array without axes. Its type must be the parameter's.
    pub(crate) fn of_numpy(
        value: &Bound<'_, PyAny>,
        param: PtxParam,
    ) -> PyResult<Result<Self, Refused>> {
        let py = value.py();
        let (Some(dtype), Some(to_bytes)) = (
            value.getattr_opt(intern!(py, "dtype"))?,
            value.getattr_opt(intern!(py, "tobytes"))?,
        ) else {
            let class = value.get_type();
            let reason = "must be an array on the device, a number or None, not";
            return Ok(Err(format!("{reason} {}", class.name()?)));
        };
        if value.getattr(intern!(py, "ndim"))?.extract::<usize>()? > 0 {
            let reason = "is an array in host memory; copy it with to_device first";
            return Ok(Err(reason.to_owned()));
        }
        if !dtype.getattr(intern!(py, "isnative"))?.extract::<bool>()? {
            return Ok(Err("has its bytes in the other order".to_owned()));
        }
        let kind = dtype.getattr(intern!(py, "kind"))?.extract::<char>()?;
        let bytes: Vec<u8> = to_bytes.call0()?.extract()?;
        let fits = match param {
            PtxParam::Integer(_) => matches!(kind, 'b' | 'i' | 'u'),
            PtxParam::Float(_) => kind == 'f',
            // Types that PTX has no name for: half precision, complex numbers, structs.
            PtxParam::Bytes(_) => true,
        };
        if !fits || bytes.len() != param.bytes() {
            return Ok(Err(format!(
                "{dtype} is not the type of the parameter, {}",
                name_of(param)
            )));
        }
        if bytes.len() > 8 {
            return Ok(Err(opaque(bytes.len())));
        }
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(&bytes);
        let bits = u64::from_le_bytes(padded);
        Ok(Ok(match (kind, bytes.len()) {
            ('f', 8) => Self::F64(f64::from_bits(bits)),
            ('f', 4) => Self::F32(f32::from_bits(bits as u32)),
            ('i', 8) => Self::I64(bits as i64),
            ('i', 4) => Self::I32(bits as i32),
            (_, 5..) => Self::U64(bits),
            _ => Self::U32(bits as u32),
        }))
    }

    /// What a launch passes.
    pub(crate) fn argument<'a>(self) -> Box<dyn Argument<'a> + Send + 'a> {
        match self {
            Self::U32(value) => Box::new(value),
            Self::I32(value) => Box::new(value),
            Self::U64(value) => Box::new(value),
            Self::I64(value) => Box::new(value),
            Self::F32(value) => Box::new(value),
            Self::F64(value) => Box::new(value),
        }
    }
}

fn name_of(param: PtxParam) -> String {
    let bits = param.bytes() * 8;
    match param {
        PtxParam::Integer(_) => format!("an integer of {bits} bits"),
        PtxParam::Float(_) => format!("a float of {bits} bits"),
        PtxParam::Bytes(bytes) => format!("{bytes} bytes"),
    }
}

fn opaque(bytes: usize) -> Refused {
    format!(
        "the parameter is a value of {bytes} bytes that cannot be passed; pass an array with it"
    )
}

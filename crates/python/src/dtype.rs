//! Element types, and their names elsewhere.

use std::ffi::CStr;
use std::fmt;

use pinlane::load::Dtype as FileDtype;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Defines `Dtype` from one table: variant, name (NumPy's, torch's and ml_dtypes' are the same), DLPack's type code,
/// bits, and the type in safetensors files.
macro_rules! dtypes {
    ($($variant:ident = $name:literal, $code:literal, $bits:literal, $file:expr;)*) => {
        /// The type of an array's elements.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Dtype {
            $($variant,)*
        }

        impl Dtype {
            const ALL: [Self; [$($bits),*].len()] = [$(Self::$variant),*];

            /// The name that NumPy, torch and ml_dtypes use.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// DLPack's type code, and bits.
            pub(crate) const fn dlpack(self) -> (u8, u8) {
                match self {
                    $(Self::$variant => ($code, $bits),)*
                }
            }

            /// The type in safetensors files, if they have it.
            pub(crate) const fn in_files(self) -> Option<FileDtype> {
                match self {
                    $(Self::$variant => $file,)*
                }
            }
        }
    };
}

dtypes! {
    Bool = "bool", 6, 8, Some(FileDtype::Bool);
    I8 = "int8", 0, 8, Some(FileDtype::I8);
    I16 = "int16", 0, 16, Some(FileDtype::I16);
    I32 = "int32", 0, 32, Some(FileDtype::I32);
    I64 = "int64", 0, 64, Some(FileDtype::I64);
    U8 = "uint8", 1, 8, Some(FileDtype::U8);
    U16 = "uint16", 1, 16, Some(FileDtype::U16);
    U32 = "uint32", 1, 32, Some(FileDtype::U32);
    U64 = "uint64", 1, 64, Some(FileDtype::U64);
    F16 = "float16", 2, 16, Some(FileDtype::F16);
    F32 = "float32", 2, 32, Some(FileDtype::F32);
    F64 = "float64", 2, 64, Some(FileDtype::F64);
    Bf16 = "bfloat16", 4, 16, Some(FileDtype::Bf16);
    C64 = "complex64", 5, 64, Some(FileDtype::C64);
    C128 = "complex128", 5, 128, None;
    F8E4M3Fn = "float8_e4m3fn", 10, 8, Some(FileDtype::F8E4M3);
    F8E4M3Fnuz = "float8_e4m3fnuz", 11, 8, Some(FileDtype::F8E4M3Fnuz);
    F8E5M2 = "float8_e5m2", 12, 8, Some(FileDtype::F8E5M2);
    F8E5M2Fnuz = "float8_e5m2fnuz", 13, 8, Some(FileDtype::F8E5M2Fnuz);
    F8E8M0Fnu = "float8_e8m0fnu", 14, 8, Some(FileDtype::F8E8M0);
}

impl Dtype {
    /// Size of an element in bytes.
    pub(crate) const fn bytes(self) -> usize {
        self.dlpack().1 as usize / 8
    }

    /// Size in bytes of an array with this shape.
    pub(crate) fn bytes_of(self, shape: &[usize]) -> PyResult<usize> {
        // As signed numbers, which is how other libraries count.
        let product = |count: isize, &len: &usize| count.checked_mul(isize::try_from(len).ok()?);
        let bytes = match shape.contains(&0) {
            // Some lengths of an empty array could be absurd, and their strides too.
            true => shape
                .iter()
                .filter(|&&len| len > 0)
                .try_fold(1, product)
                .map(|_| 0),
            false => shape.iter().try_fold(self.bytes() as isize, product),
        };
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        bytes.ok_or_else(|| {
            let shape = shape_text(shape);
            PyValueError::new_err(format!("an array of the shape {shape} is too large"))
        })
    }

    /// Whether elements become those of another type without being asked to: at most rounded, but none overflows or
    /// loses its fraction, sign or imaginary part.
    pub(crate) fn may_become(self, target: Self) -> bool {
        use DtypeKind::{Bool, Complex, Float, Signed, Unsigned};
        match (self.kind(), target.kind()) {
            (Bool, _) | (_, Complex) | (Unsigned | Signed | Float, Float) => true,
            (Unsigned, Unsigned) | (Signed, Signed) => self.bytes() <= target.bytes(),
            (Unsigned, Signed) => self.bytes() < target.bytes(),
            _ => false,
        }
    }

    const fn kind(self) -> DtypeKind {
        match self.dlpack().0 {
            0 => DtypeKind::Signed,
            1 => DtypeKind::Unsigned,
            5 => DtypeKind::Complex,
            6 => DtypeKind::Bool,
            _ => DtypeKind::Float,
        }
    }

    /// Whether NumPy has it itself, without ml_dtypes.
    pub(crate) const fn is_of_numpy(self) -> bool {
        matches!(self.dlpack().0, 0 | 1 | 2 | 5 | 6)
    }

    /// The type with this name.
    pub(crate) fn named(name: &str) -> PyResult<Self> {
        let found = Self::ALL.into_iter().find(|dtype| dtype.name() == name);
        found.ok_or_else(|| unknown(name))
    }

    /// The type of these elements in files, if arrays can have it.
    pub(crate) fn of_file(dtype: FileDtype) -> Option<Self> {
        let same = |known: &Self| known.in_files() == Some(dtype);
        Self::ALL.into_iter().find(same)
    }

    /// The type of a dataset's field.
    pub(crate) fn of_field(dtype: FileDtype) -> PyResult<Self> {
        Self::of_file(dtype).ok_or_else(|| {
            PyTypeError::new_err(format!("elements of type {dtype} have no type in Python"))
        })
    }

    /// The type that DLPack describes.
    pub(crate) fn of_dlpack(code: u8, bits: u8) -> PyResult<Self> {
        let found = Self::ALL
            .into_iter()
            .find(|dtype| dtype.dlpack() == (code, bits));
        found.ok_or_else(|| {
            PyTypeError::new_err(format!(
                "DLPack type code {code} with {bits} bits is not supported"
            ))
        })
    }

    /// The type of a torch dtype, NumPy dtype, scalar type or name.
    pub(crate) fn of_any(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(name) = value.extract::<&str>() {
            if name == "bf16" {
                return Ok(Self::Bf16);
            }
            if let Ok(dtype) = Self::named(name) {
                return Ok(dtype);
            }
        } else if let Some(name) = torch_name(value) {
            return Self::named(&name);
        }
        let numpy = value.py().import("numpy")?;
        match numpy.call_method1("dtype", (value,)) {
            Ok(dtype) => Self::of_numpy(&dtype),
            Err(_) => Err(PyTypeError::new_err(format!(
                "dtype must be a name such as \"float32\", or a dtype of NumPy or torch, not {}",
                value.repr()?
            ))),
        }
    }

    /// The type of a `numpy.dtype`.
    pub(crate) fn of_numpy(dtype: &Bound<'_, PyAny>) -> PyResult<Self> {
        if !dtype.getattr("isnative")?.extract::<bool>()? {
            return Err(byte_swapped());
        }
        Self::named(dtype.getattr("name")?.extract()?)
    }

    /// The type that a buffer's format describes, in the notation of Python's `struct` module; `None` if there is none.
    pub(crate) fn of_format(format: &CStr, item_bytes: usize) -> PyResult<Option<Self>> {
        let format = format.to_str().unwrap_or("?");
        let (is_swapped, code) = match format.as_bytes() {
            [b'>' | b'!', rest @ ..] if item_bytes > 1 => (true, rest),
            [b'@' | b'=' | b'<' | b'|' | b'>' | b'!' | b'^', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let dtype = match (code, item_bytes) {
            (b"?", 1) => Self::Bool,
            (b"b", 1) => Self::I8,
            (b"B" | b"c", 1) => Self::U8,
            (b"h" | b"i" | b"l" | b"q" | b"n", 2) => Self::I16,
            (b"h" | b"i" | b"l" | b"q" | b"n", 4) => Self::I32,
            (b"h" | b"i" | b"l" | b"q" | b"n", 8) => Self::I64,
            (b"H" | b"I" | b"L" | b"Q" | b"N", 2) => Self::U16,
            (b"H" | b"I" | b"L" | b"Q" | b"N", 4) => Self::U32,
            (b"H" | b"I" | b"L" | b"Q" | b"N", 8) => Self::U64,
            (b"e", 2) => Self::F16,
            (b"f", 4) => Self::F32,
            (b"d", 8) => Self::F64,
            (b"Zf", 8) => Self::C64,
            (b"Zd", 16) => Self::C128,
            (b"O", _) => {
                return Err(PyTypeError::new_err(
                    "an array of Python objects cannot be copied",
                ));
            }
            _ => return Ok(None),
        };
        if is_swapped {
            Err(byte_swapped())
        } else {
            Ok(Some(dtype))
        }
    }

    /// NumPy's notation for `__cuda_array_interface__`; types that it does not have are bytes.
    pub(crate) fn typestr(self) -> String {
        let kind = match self.dlpack().0 {
            6 => "|b",
            0 => "<i",
            1 => "<u",
            2 => "<f",
            5 => "<c",
            _ => "<V",
        };
        let kind = if self.bytes() == 1 {
            kind.replace('<', "|")
        } else {
            kind.to_owned()
        };
        format!("{kind}{}", self.bytes())
    }
}

/// A shape as Python writes it: `(2, 3)`.
pub(crate) fn shape_text<L: ToString>(shape: &[L]) -> String {
    let lens: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let comma = if lens.len() == 1 { "," } else { "" };
    format!("({}{comma})", lens.join(", "))
}

/// What kind of number a type holds.
#[derive(Clone, Copy)]
enum DtypeKind {
    Bool,
    Unsigned,
    Signed,
    Float,
    Complex,
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The `float32` of `torch.float32`.
fn torch_name(value: &Bound<'_, PyAny>) -> Option<String> {
    let module: String = value
        .get_type()
        .getattr("__module__")
        .ok()?
        .extract()
        .ok()?;
    let text = (module == "torch").then(|| value.to_string())?;
    text.strip_prefix("torch.").map(str::to_owned)
}

/// The error for elements of a type that devices do not have.
pub(crate) fn unknown(name: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "elements of type {name} cannot be copied; booleans, integers, floats and complex numbers can"
    ))
}

fn byte_swapped() -> PyErr {
    PyValueError::new_err(
        "the array's bytes are in the other order; convert it first: array.astype(array.dtype.newbyteorder('='))",
    )
}

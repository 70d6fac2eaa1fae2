//! What a tensor of a file is as an array.

use pinlane::load::{Dtype as FileDtype, TensorInfo};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::dtype::{Dtype, shape_text};

/// Shape and element type of a tensor as an array.
#[derive(Clone)]
pub(super) struct ArrayType {
    pub(super) shape: Vec<usize>,
    pub(super) elements: ElementType,
    pub(super) bytes: usize,
}

#[derive(Clone, Copy)]
pub(super) enum ElementType {
    Known(Dtype),
    /// Two 4-bit floats in a byte, which only torch has.
    PackedF4,
}

impl ElementType {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Known(dtype) => dtype.name(),
            Self::PackedF4 => "float4_e2m1fn_x2",
        }
    }
}

impl ArrayType {
    pub(super) fn of_all(
        tensors: &[TensorInfo],
        convert: Option<FileDtype>,
    ) -> PyResult<Vec<Self>> {
        tensors
            .iter()
            .map(|tensor| Self::of(tensor, convert))
            .collect()
    }

    fn of(tensor: &TensorInfo, convert: Option<FileDtype>) -> PyResult<Self> {
        let stored = tensor.dtype();
        let dtype = match convert {
            Some(to) if is_convertible(stored) => to,
            _ => stored,
        };
        let mut shape = tensor
            .shape()
            .iter()
            .map(|len| *len as usize)
            .collect::<Vec<_>>();
        let elements = match (dtype, shape.last_mut()) {
            (FileDtype::F4, Some(last)) if last.is_multiple_of(2) => {
                *last /= 2;
                ElementType::PackedF4
            }
            _ => ElementType::Known(Dtype::of_file(dtype).ok_or_else(|| {
                PyTypeError::new_err(format!(
                    "tensor {:?} has elements of type {dtype}, which arrays cannot have; leave it out with select",
                    tensor.name()
                ))
            })?),
        };
        let bytes = tensor.len_bytes() / stored.bits().div_ceil(8) * dtype.bits().div_ceil(8);
        let bytes = match elements {
            ElementType::PackedF4 => tensor.len_bytes(),
            ElementType::Known(_) => bytes,
        };
        Ok(Self {
            shape,
            elements,
            bytes: bytes as usize,
        })
    }

    /// What functions in Python get.
    pub(super) fn for_python<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, &'static str)> {
        Ok((PyTuple::new(py, &self.shape)?, self.elements.name()))
    }

    /// Whether an array has this type; if not, what is wrong.
    pub(super) fn check(&self, shape: &[usize], dtype: Dtype) -> Result<(), String> {
        if shape != self.shape {
            return Err(format!(
                "out has the shape {}, the tensor {}",
                shape_text(shape),
                shape_text(&self.shape)
            ));
        }
        match self.elements {
            ElementType::Known(known) if known == dtype => Ok(()),
            elements => Err(format!(
                "out has elements of {dtype}, the tensor of {}",
                elements.name()
            )),
        }
    }
}

/// Whether tensors can be converted from and to this type.
pub(super) fn is_convertible(dtype: FileDtype) -> bool {
    use FileDtype::{Bf16, F16, F32, F64};
    matches!(dtype, F16 | Bf16 | F32 | F64)
}

/// The same exception, with the name of the tensor in its text.
pub(super) fn of_tensor(py: Python<'_>, name: &str, error: &PyErr) -> PyErr {
    let text = error.value(py).to_string();
    PyErr::from_type(error.get_type(py), format!("tensor {name:?}: {text}"))
}

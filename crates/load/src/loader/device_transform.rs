//! Kernels that run on a field of a batch after its copy.

use std::sync::Mutex;

use crate::Dtype;
use crate::dataset::Field;
use pinlane_core::internal::{NormalizeKernels, lock};
use pinlane_core::kernel::{In, Out};
use pinlane_core::{
    Device, DeviceSlice, DeviceSliceMut, Kernel, LaunchShape, Module, Normalize, Normalizer, Stream,
};

use super::LoaderError;
use super::buffers::DeviceBatch;
use super::layout::{BatchLayout, FieldSpan, PackedBatch, aligned};

/// How to transform a field on the device after the copy, so that fewer bytes go over the link.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum DeviceTransform {
    /// Bytes to f32, as `x * scale + offset`, rounded after each step.
    U8ToF32 {
        /// The factor.
        scale: f32,
        /// The summand.
        offset: f32,
    },
    /// Bytes to floating-point numbers, with factors for each channel, like
    /// [`Builtin::normalize`](pinlane_core::Builtin::normalize).
    ///
    /// The elements of a sample must be a multiple of [`channels`](Normalize::channels) times
    /// [`inner`](Normalize::inner). A variable field can have one channel only.
    ///
    /// ```
    /// # fn main() -> pinlane::Result<()> {
    /// use pinlane::Normalize;
    /// use pinlane::load::{DeviceTransform, Dtype, LoaderConfig};
    ///
    /// let (mean, std) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    /// let transform = DeviceTransform::Normalize {
    ///     normalize: Normalize::mean_std(&mean, &std, 224 * 224)?,
    ///     to: Dtype::Bf16,
    /// };
    /// let config = LoaderConfig::default().device_transform("image", transform);
    /// # Ok(())
    /// # }
    /// ```
    Normalize {
        /// The factors, and the layout of channels in a sample.
        normalize: Normalize,
        /// The resulting type: [`Dtype::F32`] or [`Dtype::Bf16`].
        to: Dtype,
    },
}

impl DeviceTransform {
    /// The resulting type.
    fn dtype(&self) -> Dtype {
        match self {
            Self::U8ToF32 { .. } => Dtype::F32,
            Self::Normalize { to, .. } => *to,
        }
    }

    /// Check that it applies to a field, of which a sample takes `stride` bytes.
    fn check(&self, field: &Field, stride: usize) -> Result<(), String> {
        if field.dtype() != Dtype::U8 {
            return Err(format!("it holds {}, not U8", field.dtype()));
        }
        let Self::Normalize { normalize, to } = self else {
            return Ok(());
        };
        if !matches!(to, Dtype::F32 | Dtype::Bf16) {
            return Err(format!("it can be normalized to F32 or BF16, not {to}"));
        }
        let (channels, inner) = (normalize.channels(), normalize.inner());
        if !field.is_fixed() {
            return match channels > 1 {
                true => Err(format!("a variable field has one channel, not {channels}")),
                false => Ok(()),
            };
        }
        // A round that overflows is longer than any sample.
        let round = channels.checked_mul(inner);
        match stride == 0 || round.is_some_and(|round| stride.is_multiple_of(round)) {
            true => Ok(()),
            false => Err(format!(
                "a sample has {stride} elements, not a multiple of {channels} channels times \
                 {inner} elements"
            )),
        }
    }
}

/// The device transforms of a loader, with their kernels.
pub(super) struct DeviceTransforms {
    steps: Vec<TransformStep>,
    /// Loaded if there are steps.
    kernels: Option<TransformKernels>,
    /// Bytes of the results for a batch.
    bytes: usize,
}

struct TransformStep {
    field: usize,
    dtype: Dtype,
    /// Byte where its results start.
    start: usize,
    work: TransformWork,
}

enum TransformWork {
    Scale { scale: f32, offset: f32 },
    Normalize(NormalizeTable),
}

/// Factors on the device. Uploaded again if a failed launch leaves it unknown whether they are still in use.
struct NormalizeTable {
    factors: Normalize,
    uploaded: Mutex<Normalizer>,
}

struct TransformKernels {
    u8_to_f32: Kernel<ScaleParams>,
    normalize: NormalizeKernels,
}

/// Number of elements, scale, offset, source and target.
type ScaleParams = (u64, f32, f32, In<u8>, Out<f32>);

impl TransformStep {
    /// Bytes of the results for this many bytes of the field.
    fn bytes_of(&self, bytes: usize) -> usize {
        bytes * element_bytes(self.dtype)
    }
}

impl TransformWork {
    /// Uploads factors on `stream`.
    fn new(stream: &Stream, transform: &DeviceTransform) -> pinlane_core::Result<Self> {
        Ok(match transform {
            DeviceTransform::U8ToF32 { scale, offset } => Self::Scale {
                scale: *scale,
                offset: *offset,
            },
            DeviceTransform::Normalize { normalize, .. } => Self::Normalize(NormalizeTable {
                uploaded: Mutex::new(normalize.upload(stream)?),
                factors: normalize.clone(),
            }),
        })
    }
}

impl DeviceTransforms {
    /// For batches of at most `samples` samples, whose copies go onto `stream`.
    pub(super) fn new(
        device: &Device,
        stream: &Stream,
        layout: &BatchLayout,
        transforms: &[(String, DeviceTransform)],
        samples: usize,
    ) -> Result<Self, LoaderError> {
        let fields = layout.fields();
        let mut bytes = 0;
        let mut places: Vec<(usize, usize)> = Vec::new();
        for (name, transform) in transforms {
            let invalid = |reason: &str| LoaderError::field("device_transforms", name, reason);
            let field = fields.iter().position(|field| field.name() == name);
            let field = field.ok_or_else(|| invalid("the dataset has no such field"))?;
            if places.iter().any(|(other, _)| *other == field) {
                return Err(invalid("it has two transforms"));
            }
            let stride = layout.stride(field);
            transform
                .check(&fields[field], stride)
                .map_err(|reason| invalid(&reason))?;
            let place = || {
                let start = aligned(bytes)?;
                let elements = stride.checked_mul(samples)?;
                let end = elements.checked_mul(element_bytes(transform.dtype()))?;
                Some((start, end.checked_add(start)?))
            };
            let (start, end) = place().ok_or_else(|| invalid("its result is too large"))?;
            bytes = end;
            places.push((field, start));
        }
        // Everything is valid: use the device.
        let kernels = match places.is_empty() {
            true => None,
            false => Some(TransformKernels::load(device)?),
        };
        let steps = places.into_iter().zip(transforms);
        let steps = steps.map(|((field, start), (_, transform))| {
            Ok(TransformStep {
                field,
                dtype: transform.dtype(),
                start,
                work: TransformWork::new(stream, transform)?,
            })
        });
        Ok(Self {
            steps: steps.collect::<pinlane_core::Result<_>>()?,
            kernels,
            bytes,
        })
    }

    /// Bytes of the results for a batch.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Point the spans of transformed fields to their results.
    pub(super) fn redirect(&self, spans: &mut [FieldSpan]) {
        for step in &self.steps {
            let span = &mut spans[step.field];
            span.dtype = step.dtype;
            span.transformed = true;
            span.start = step.start;
            span.bytes = step.bytes_of(span.bytes);
        }
    }

    /// Submit all steps for a batch whose copy is submitted.
    pub(super) fn run(
        &self,
        stream: &Stream,
        packed: &PackedBatch,
        memory: &mut DeviceBatch,
    ) -> pinlane_core::Result<()> {
        let Some(kernels) = &self.kernels else {
            return Ok(());
        };
        for step in &self.steps {
            let span = &packed.spans[step.field];
            if span.bytes == 0 {
                continue;
            }
            let raw = memory.raw.range(span.start..span.start + span.bytes);
            let end = step.start + step.bytes_of(span.bytes);
            let target = memory.transformed.range_mut(step.start..end);
            match &step.work {
                TransformWork::Scale { scale, offset } => {
                    kernels.scale(stream, (*scale, *offset), raw, target.cast())?;
                }
                TransformWork::Normalize(table) => {
                    kernels.normalize(stream, table, step.dtype, raw, target)?;
                }
            }
        }
        Ok(())
    }
}

impl TransformKernels {
    fn load(device: &Device) -> pinlane_core::Result<Self> {
        let module: Module = device.load_ptx(pinlane_kernels::PTX)?;
        Ok(Self {
            u8_to_f32: module.kernel("pinlane_u8_to_f32")?,
            normalize: NormalizeKernels::find(&module)?,
        })
    }

    fn normalize(
        &self,
        stream: &Stream,
        table: &NormalizeTable,
        to: Dtype,
        source: DeviceSlice<'_, u8>,
        target: DeviceSliceMut<'_, u8>,
    ) -> pinlane_core::Result<()> {
        let mut uploaded = lock(&table.uploaded);
        if !uploaded.is_sound() {
            *uploaded = table.factors.upload(stream)?;
        }
        let kernels = &self.normalize;
        match to {
            Dtype::Bf16 => kernels.run::<half::bf16>(stream, &uploaded, source, target.cast()),
            _ => kernels.run::<f32>(stream, &uploaded, source, target.cast()),
        }
    }

    fn scale(
        &self,
        stream: &Stream,
        (scale, offset): (f32, f32),
        source: DeviceSlice<'_, u8>,
        target: DeviceSliceMut<'_, f32>,
    ) -> pinlane_core::Result<()> {
        let items = source.len();
        let values = (items as u64, scale, offset, source, target);
        // SAFETY: these are the kernel's parameters. It reads and writes the first `items` elements of the
        // slices, which have that many.
        unsafe { stream.launch(&self.u8_to_f32, LaunchShape::for_items(items), values) }
    }
}

/// Bytes of the element that results from one byte.
fn element_bytes(dtype: Dtype) -> usize {
    dtype.bits() as usize / 8
}

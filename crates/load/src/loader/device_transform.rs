//! Kernels that run on a field of a batch after its copy.

use std::mem;
use std::sync::Mutex;

use crate::Dtype;
use crate::dataset::Field;
use pinlane_core::internal::{NormalizeKernels, lock};
use pinlane_core::kernel::{In, Out};
use pinlane_core::{
    Device, DeviceSlice, DeviceSliceMut, Kernel, LaunchShape, Module, Normalize, Stream,
};

use super::batch_layout::{BatchLayout, FieldSpan, aligned};
use super::buffers::DeviceBatch;
use super::{LoaderError, Result};

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
    /// use pinlane::Normalize;
    /// use pinlane::load::{DeviceTransform, Dtype, LoaderConfig};
    ///
    /// let (mean, std) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    /// let transform = DeviceTransform::Normalize {
    ///     normalize: Normalize::mean_std(&mean, &std, 224 * 224)?,
    ///     to: Dtype::Bf16,
    /// };
    /// let config = LoaderConfig::default().device_transform("image", transform);
    /// # Ok::<(), pinlane::Error>(())
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
        // A round that overflows is longer than any sample.
        let round = channels.checked_mul(inner);
        match field.is_fixed() {
            false if channels > 1 => {
                Err(format!("a variable field has one channel, not {channels}"))
            }
            true if stride > 0 && !round.is_some_and(|round| stride.is_multiple_of(round)) => {
                Err(format!(
                    "a sample has {stride} elements, not a multiple of {channels} channels times \
                     {inner} elements"
                ))
            }
            _ => Ok(()),
        }
    }

    /// Find its kernel, and upload its factors on `stream`.
    fn prepare(&self, module: &Module, stream: &Stream) -> pinlane_core::Result<TransformWork> {
        match self.clone() {
            Self::U8ToF32 { scale, offset } => {
                let kernel: Kernel<ScaleParams> = module.kernel("pinlane_u8_to_f32")?;
                Ok(Box::new(move |stream, source, target| {
                    let items = source.len();
                    let values = (items as u64, scale, offset, source, target.cast());
                    // SAFETY: these are the kernel's parameters. It reads and writes the first `items`
                    // elements of the slices, which have that many.
                    unsafe { stream.launch(&kernel, LaunchShape::for_items(items), values) }
                }))
            }
            Self::Normalize { normalize, to } => {
                let kernels = NormalizeKernels::find(module)?;
                let factors = Mutex::new(normalize.upload(stream)?);
                Ok(Box::new(move |stream, source, target| {
                    let mut factors = lock(&factors);
                    // A failed launch leaves it unknown whether they are still in use.
                    if !factors.is_sound() {
                        *factors = normalize.upload(stream)?;
                    }
                    match to {
                        Dtype::Bf16 => {
                            kernels.run::<half::bf16>(stream, &factors, source, target.cast())
                        }
                        _ => kernels.run::<f32>(stream, &factors, source, target.cast()),
                    }
                }))
            }
        }
    }
}

/// Number of elements, scale, offset, source and target.
type ScaleParams = (u64, f32, f32, In<u8>, Out<f32>);

/// Submits a transform of a field to a stream.
type TransformWork = Box<
    dyn Fn(&Stream, DeviceSlice<'_, u8>, DeviceSliceMut<'_, u8>) -> pinlane_core::Result<()>
        + Send
        + Sync,
>;

/// The device transforms of a loader.
pub(super) struct DeviceTransforms {
    steps: Vec<TransformStep>,
    /// Bytes of the results for a batch.
    pub(super) bytes: usize,
}

struct TransformStep {
    field: usize,
    dtype: Dtype,
    /// Byte where its results start.
    start: usize,
    work: TransformWork,
}

impl DeviceTransforms {
    /// For batches of at most `samples` samples, whose copies go onto `stream`.
    pub(super) fn new(
        device: &Device,
        stream: &Stream,
        layout: &BatchLayout,
        transforms: &[(String, DeviceTransform)],
        samples: usize,
    ) -> Result<Self> {
        let fields = &layout.fields;
        let mut bytes = 0;
        let mut places: Vec<(usize, usize)> = Vec::new();
        for (name, transform) in transforms {
            let invalid = |reason: &str| LoaderError::field("device_transforms", name, reason);
            let field = fields.iter().position(|field| field.name() == name);
            let field = field.ok_or_else(|| invalid("the dataset has no such field"))?;
            if places.iter().any(|(other, _)| *other == field) {
                return Err(invalid("it has two transforms"));
            }
            let stride = layout.strides[field];
            let checked = transform.check(&fields[field], stride);
            checked.map_err(|reason| invalid(&reason))?;
            let place = || {
                let start = aligned(bytes)?;
                let elements = stride.checked_mul(samples)?;
                let end = elements.checked_mul(transform.dtype().bits() as usize / 8)?;
                Some((start, end.checked_add(start)?))
            };
            let (start, end) = place().ok_or_else(|| invalid("its result is too large"))?;
            bytes = end;
            places.push((field, start));
        }
        // Everything is valid: use the device.
        let mut steps = Vec::new();
        if !places.is_empty() {
            let module = device.load_ptx(pinlane_kernels::PTX)?;
            for ((field, start), (_, transform)) in places.into_iter().zip(transforms) {
                steps.push(TransformStep {
                    field,
                    dtype: transform.dtype(),
                    start,
                    work: transform.prepare(&module, stream)?,
                });
            }
        }
        Ok(Self { steps, bytes })
    }

    /// Submit all steps for a batch whose copy is submitted, and point the spans to the results.
    pub(super) fn run(
        &self,
        stream: &Stream,
        spans: &mut [FieldSpan],
        memory: &mut DeviceBatch,
    ) -> pinlane_core::Result<()> {
        for step in &self.steps {
            let span = &mut spans[step.field];
            let end = step.start + span.bytes.len() * step.dtype.bits() as usize / 8;
            let raw = mem::replace(&mut span.bytes, step.start..end);
            span.transformed = Some(step.dtype);
            if !raw.is_empty() {
                let target = memory.transformed.range_mut(span.bytes.clone());
                (step.work)(stream, memory.raw.range(raw), target)?;
            }
        }
        Ok(())
    }
}

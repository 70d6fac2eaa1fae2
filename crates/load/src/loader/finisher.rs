//! The device's steps behind the copy of a batch.

use std::sync::{Mutex, PoisonError};

use crate::Dtype;
use pinlane_core::internal::NormalizeKernels;
use pinlane_core::kernel::{In, Out};
use pinlane_core::{
    Device, DeviceSlice, DeviceSliceMut, Kernel, LaunchShape, Module, Normalize, Normalizer, Stream,
};

use super::finish::wrong;
use super::layout::{Layout, aligned};
use super::pack::Packed;
use super::slot::Berth;
use super::{DeviceTransform, LoaderError};

/// The steps of a loader, with the kernels that they need.
pub(super) struct Finisher {
    steps: Vec<Step>,
    /// Where there are steps.
    kernels: Option<Kernels>,
    /// Bytes of what comes out.
    bytes: usize,
}

struct Kernels {
    u8_to_f32: Kernel<Scale>,
    normalize: NormalizeKernels,
}

/// How many elements, scale and offset, and both ends.
type Scale = (u64, f32, f32, In<u8>, Out<f32>);

pub(super) struct Step {
    pub(super) field: usize,
    pub(super) dtype: Dtype,
    /// Where its results start.
    pub(super) start: usize,
    work: Work,
}

/// What a step does.
enum Work {
    Scale { scale: f32, offset: f32 },
    Normalize(Table),
}

/// Factors on the device. Should a launch go so wrong that nobody can tell whether it still reads them,
/// they are brought there once more.
struct Table {
    factors: Normalize,
    there: Mutex<Normalizer>,
}

impl Step {
    /// Bytes that come of so many bytes of the field.
    pub(super) fn bytes_of(&self, bytes: usize) -> usize {
        bytes * element_bytes(self.dtype)
    }
}

impl Work {
    /// Factors are brought to the device on this stream.
    fn new(stream: &Stream, finish: &DeviceTransform) -> pinlane_core::Result<Self> {
        Ok(match finish {
            DeviceTransform::U8ToF32 { scale, offset } => Self::Scale {
                scale: *scale,
                offset: *offset,
            },
            DeviceTransform::Normalize { normalize, .. } => Self::Normalize(Table {
                there: Mutex::new(normalize.upload(stream)?),
                factors: normalize.clone(),
            }),
        })
    }
}

impl Finisher {
    /// For batches of so many samples at most, whose copies go onto `stream`.
    pub(super) fn new(
        device: &Device,
        stream: &Stream,
        layout: &Layout,
        finish: &[(String, DeviceTransform)],
        samples: usize,
    ) -> Result<Self, LoaderError> {
        let mut bytes = 0;
        let mut places: Vec<(usize, usize)> = Vec::new();
        for (name, finish) in finish {
            let fields = layout.fields();
            let field = fields.iter().position(|field| field.name() == name);
            let field = field.ok_or_else(|| wrong(name, "the dataset has no such field"))?;
            if places.iter().any(|(other, _)| *other == field) {
                return Err(wrong(name, "there are two steps for it"));
            }
            finish.check(&fields[field], layout.stride(field))?;
            let too_large = || wrong(name, "what comes of it is too large");
            let start = aligned(bytes).ok_or_else(too_large)?;
            let elements = layout.stride(field).checked_mul(samples);
            bytes = elements
                .and_then(|elements| elements.checked_mul(element_bytes(finish.dtype())))
                .and_then(|bytes| bytes.checked_add(start))
                .ok_or_else(too_large)?;
            places.push((field, start));
        }
        // Everything is known to be possible before the device is asked for anything.
        let kernels = match places.is_empty() {
            true => None,
            false => Some(Kernels::find(&device.load_ptx(pinlane_kernels::PTX)?)?),
        };
        let steps = places.into_iter().zip(finish);
        let steps = steps.map(|((field, start), (_, finish))| {
            Ok(Step {
                field,
                dtype: finish.dtype(),
                start,
                work: Work::new(stream, finish)?,
            })
        });
        Ok(Self {
            steps: steps.collect::<pinlane_core::Result<_>>()?,
            kernels,
            bytes,
        })
    }

    /// Bytes of what comes out.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The step of a field, if it has one.
    pub(super) fn step(&self, field: usize) -> Option<&Step> {
        self.steps.iter().find(|step| step.field == field)
    }

    /// Submit all steps for a batch whose copy is submitted.
    pub(super) fn run(
        &self,
        stream: &Stream,
        packed: &Packed,
        berth: &mut Berth,
    ) -> pinlane_core::Result<()> {
        let Some(kernels) = &self.kernels else {
            return Ok(());
        };
        for step in &self.steps {
            let field = &packed.fields[step.field];
            if field.bytes == 0 {
                continue;
            }
            let raw = berth.raw.range(field.start..field.start + field.bytes);
            let end = step.start + step.bytes_of(field.bytes);
            let target = berth.finished.range_mut(step.start..end);
            match &step.work {
                Work::Scale { scale, offset } => {
                    kernels.scale(stream, (*scale, *offset), raw, target.cast())?;
                }
                Work::Normalize(table) => {
                    kernels.normalize(stream, table, step.dtype, raw, target)?;
                }
            }
        }
        Ok(())
    }
}

impl Kernels {
    fn find(module: &Module) -> pinlane_core::Result<Self> {
        Ok(Self {
            u8_to_f32: module.kernel("pinlane_u8_to_f32")?,
            normalize: NormalizeKernels::find(module)?,
        })
    }

    fn normalize(
        &self,
        stream: &Stream,
        table: &Table,
        to: Dtype,
        source: DeviceSlice<'_, u8>,
        target: DeviceSliceMut<'_, u8>,
    ) -> pinlane_core::Result<()> {
        let mut there = table.there.lock().unwrap_or_else(PoisonError::into_inner);
        if !there.is_sound() {
            *there = table.factors.upload(stream)?;
        }
        let kernels = &self.normalize;
        match to {
            Dtype::Bf16 => kernels.run::<half::bf16>(stream, &there, source, target.cast()),
            _ => kernels.run::<f32>(stream, &there, source, target.cast()),
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
        // SAFETY: these are its parameters; it reads and writes the first `items` elements of slices
        // that have as many.
        unsafe { stream.launch(&self.u8_to_f32, LaunchShape::for_items(items), values) }
    }
}

/// Bytes of an element that comes of a byte.
fn element_bytes(dtype: Dtype) -> usize {
    dtype.bits() as usize / 8
}

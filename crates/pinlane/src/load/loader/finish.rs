//! What the device makes of a field once it is there.

use crate::kernel::{In, Out};
use crate::load::Dtype;
use crate::{Device, DeviceSlice, DeviceSliceMut, Kernel, LaunchShape, Stream};

use super::LoaderError;
use super::layout::{Layout, aligned};
use super::pack::Packed;
use super::slot::Berth;

/// What the device makes of a field once it is there, so that fewer bytes go over the link.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Finish {
    /// Bytes become f32, as `x * scale + offset`, rounded after each step.
    U8ToF32 {
        /// What each byte is multiplied by.
        scale: f32,
        /// What is added then.
        offset: f32,
    },
}

impl Finish {
    /// What the field must hold, and what comes of it.
    fn dtypes(&self) -> (Dtype, Dtype) {
        match self {
            Self::U8ToF32 { .. } => (Dtype::U8, Dtype::F32),
        }
    }
}

/// The steps of a loader, with the kernels that they need.
pub(super) struct Finisher {
    steps: Vec<Step>,
    u8_to_f32: Option<Kernel<Scale>>,
    /// Bytes of what comes out.
    bytes: usize,
}

/// How many elements, scale and offset, and both ends.
type Scale = (u64, f32, f32, In<u8>, Out<f32>);

pub(super) struct Step {
    pub(super) field: usize,
    pub(super) dtype: Dtype,
    /// Where its results start.
    pub(super) start: usize,
    finish: Finish,
}

impl Step {
    /// Bytes that come of so many bytes of the field.
    pub(super) fn bytes_of(&self, bytes: usize) -> usize {
        match self.finish {
            Finish::U8ToF32 { .. } => bytes * size_of::<f32>(),
        }
    }
}

impl Finisher {
    /// For batches of so many samples at most.
    pub(super) fn new(
        device: &Device,
        layout: &Layout,
        finish: &[(String, Finish)],
        samples: usize,
    ) -> Result<Self, LoaderError> {
        let mut bytes = 0;
        let mut steps: Vec<Step> = Vec::new();
        for (name, finish) in finish {
            let fields = layout.fields();
            let field = fields.iter().position(|field| field.name() == name);
            let field = field.ok_or_else(|| wrong(name, "the dataset has no such field"))?;
            if steps.iter().any(|step| step.field == field) {
                return Err(wrong(name, "there are two steps for it"));
            }
            let (from, dtype) = finish.dtypes();
            if fields[field].dtype() != from {
                let holds = fields[field].dtype();
                return Err(wrong(name, &format!("it holds {holds}, not {from}")));
            }
            let too_large = || wrong(name, "what comes of it is too large");
            let start = aligned(bytes).ok_or_else(too_large)?;
            let elements = layout.stride(field).checked_mul(samples);
            bytes = elements
                .and_then(|elements| elements.checked_mul(dtype.bits() as usize / 8))
                .and_then(|bytes| bytes.checked_add(start))
                .ok_or_else(too_large)?;
            steps.push(Step {
                field,
                dtype,
                start,
                finish: finish.clone(),
            });
        }
        let u8_to_f32 = match steps.is_empty() {
            true => None,
            false => {
                let module = device.load_ptx(pinlane_kernels::PTX)?;
                Some(module.kernel("pinlane_u8_to_f32")?)
            }
        };
        Ok(Self {
            steps,
            u8_to_f32,
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
    ) -> crate::Result<()> {
        for step in &self.steps {
            let field = &packed.fields[step.field];
            if field.bytes == 0 {
                continue;
            }
            let raw = berth.raw.range(field.start..field.start + field.bytes);
            match step.finish {
                Finish::U8ToF32 { scale, offset } => {
                    let end = step.start + step.bytes_of(field.bytes);
                    let target = berth.finished.range_mut(step.start..end).cast();
                    self.scale(stream, (scale, offset), raw, target)?;
                }
            }
        }
        Ok(())
    }

    fn scale(
        &self,
        stream: &Stream,
        (scale, offset): (f32, f32),
        source: DeviceSlice<'_, u8>,
        target: DeviceSliceMut<'_, f32>,
    ) -> crate::Result<()> {
        let kernel = self.u8_to_f32.as_ref().expect("loaded for the steps");
        let items = source.len();
        let values = (items as u64, scale, offset, source, target);
        // SAFETY: these are its parameters; it reads and writes the first `items` elements of slices
        // that have as many.
        unsafe { stream.launch(kernel, LaunchShape::for_items(items), values) }
    }
}

fn wrong(name: &str, reason: &str) -> LoaderError {
    LoaderError::Config {
        field: "finish",
        reason: format!("field `{name}`: {reason}"),
    }
}

//! What the device can make of a field once it is there.

use crate::Dtype;
use crate::dataset::{Field, FieldShape};
use pinlane_core::Normalize;

use super::LoaderError;

/// What the device makes of a field once it is there, so that fewer bytes go over the link.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum DeviceTransform {
    /// Bytes become f32, as `x * scale + offset`, rounded after each step.
    U8ToF32 {
        /// What each byte is multiplied by.
        scale: f32,
        /// What is added then.
        offset: f32,
    },
    /// Bytes become numbers, each channel with its own factors, as
    /// [`Builtin::normalize`](pinlane_core::Builtin::normalize) does it.
    ///
    /// A sample holds whole rounds of its channels: its elements are a multiple of
    /// [`channels`](Normalize::channels) times [`inner`](Normalize::inner). A field whose samples
    /// differ in length can have one channel only.
    ///
    /// ```
    /// # fn main() -> pinlane::Result<()> {
    /// use pinlane::Normalize;
    /// use pinlane::load::{Dtype, DeviceTransform, LoaderConfig};
    ///
    /// let (mean, std) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    /// let finish = DeviceTransform::Normalize {
    ///     normalize: Normalize::mean_std(&mean, &std, 224 * 224)?,
    ///     to: Dtype::Bf16,
    /// };
    /// let config = LoaderConfig::default().device_transform("image", finish);
    /// # Ok(())
    /// # }
    /// ```
    Normalize {
        /// The factors, and how channels lie in a sample.
        normalize: Normalize,
        /// What the numbers are: [`Dtype::F32`] or [`Dtype::Bf16`].
        to: Dtype,
    },
}

impl DeviceTransform {
    /// What comes of the field.
    pub(super) fn dtype(&self) -> Dtype {
        match self {
            Self::U8ToF32 { .. } => Dtype::F32,
            Self::Normalize { to, .. } => *to,
        }
    }

    /// Whether it can be done with this field, of which a sample takes `stride` bytes.
    pub(super) fn check(&self, field: &Field, stride: usize) -> Result<(), LoaderError> {
        let name = field.name();
        if field.dtype() != Dtype::U8 {
            let holds = field.dtype();
            return Err(wrong(name, &format!("it holds {holds}, not U8")));
        }
        let Self::Normalize { normalize, to } = self else {
            return Ok(());
        };
        if !matches!(to, Dtype::F32 | Dtype::Bf16) {
            let reason = format!("it can be normalised to F32 or BF16, not to {to}");
            return Err(wrong(name, &reason));
        }
        let (channels, inner) = (normalize.channels(), normalize.inner());
        match field.shape() {
            FieldShape::Variable { .. } if channels > 1 => Err(wrong(
                name,
                &format!("its samples differ in length, so it has one channel, not {channels}"),
            )),
            FieldShape::Variable { .. } => Ok(()),
            FieldShape::Fixed(_) => {
                // A round that overflows is longer than any sample.
                let round = channels.checked_mul(inner);
                match round.is_some_and(|round| stride.is_multiple_of(round)) || stride == 0 {
                    true => Ok(()),
                    false => Err(wrong(
                        name,
                        &format!(
                            "a sample has {stride} elements, which {channels} channels of {inner} \
                             elements in a row do not divide"
                        ),
                    )),
                }
            }
        }
    }
}

/// A step for the field of this name that cannot be.
pub(super) fn wrong(name: &str, reason: &str) -> LoaderError {
    LoaderError::Config {
        field: "device_transforms",
        reason: format!("field `{name}`: {reason}"),
    }
}

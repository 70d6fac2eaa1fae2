//! Scale and offset of each channel.

use pinlane_kernels::MAX_CHANNELS;

use super::Factors;
use crate::{Error, Result};

/// How bytes become numbers: `x * scale + offset`, with separate factors for each channel.
///
/// Element `i` belongs to channel `i / inner % channels`. For images stored plane by plane (CHW), `inner`
/// is the number of pixels; for interleaved images (HWC), it is 1.
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// use pinlane::Normalize;
///
/// let per_pixel = Normalize::new(&[2.0 / 255.0; 3], &[-1.0; 3], 1)?;
/// assert_eq!((per_pixel.channels(), per_pixel.inner()), (3, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Normalize {
    factors: Vec<Factors>,
    inner: usize,
}

impl Normalize {
    /// Takes a scale and an offset for each channel, in order, and `inner`, the number of consecutive
    /// elements of one channel.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] unless there are 1 to 16 channels, as many offsets as scales, all of them
    /// finite, and `inner` is at least 1.
    pub fn new(scale: &[f32], offset: &[f32], inner: usize) -> Result<Self> {
        check_channels("scale", scale)?;
        check_same("offset", scale, offset, "must have as many as scale")?;
        check_finite("scale", scale)?;
        check_finite("offset", offset)?;
        check(inner > 0, "inner", "must be at least 1")?;
        let pairs = scale.iter().zip(offset);
        Ok(Self {
            factors: pairs.map(|(scale, offset)| [*scale, *offset]).collect(),
            inner,
        })
    }

    /// The usual `(x / 255 - mean) / std` for each channel, as one multiplication and one addition whose
    /// factors are computed in `f64`.
    ///
    /// # Errors
    /// As for [`new`](Self::new), applied to `mean` and `std`. Also if `std` is 0, or so small that the
    /// factors are not finite.
    pub fn mean_std(mean: &[f32], std: &[f32], inner: usize) -> Result<Self> {
        check_channels("mean", mean)?;
        check_same("std", mean, std, "must have as many as mean")?;
        check_finite("mean", mean)?;
        check_finite("std", std)?;
        let nonzero = std.iter().all(|std| *std != 0.0);
        check(nonzero, "std", "must not be 0")?;
        let scale: Vec<f32> = std
            .iter()
            .map(|std| (1.0 / (255.0 * f64::from(*std))) as f32)
            .collect();
        let offset: Vec<f32> = mean
            .iter()
            .zip(std)
            .map(|(mean, std)| (-f64::from(*mean) / f64::from(*std)) as f32)
            .collect();
        let finite = scale.iter().chain(&offset).all(|factor| factor.is_finite());
        check(finite, "std", "must not be that close to 0")?;
        Self::new(&scale, &offset, inner)
    }

    /// Number of channels.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.factors.len()
    }

    /// Number of consecutive elements of one channel.
    #[must_use]
    pub fn inner(&self) -> usize {
        self.inner
    }

    /// Scale and offset of each channel.
    #[must_use]
    pub fn factors(&self) -> &[[f32; 2]] {
        &self.factors
    }
}

fn check_channels(field: &'static str, values: &[f32]) -> Result<()> {
    // The message below states the same number.
    const { assert!(MAX_CHANNELS == 16) };
    let fits = (1..=MAX_CHANNELS).contains(&values.len());
    check(fits, field, "must be for 1 to 16 channels")
}

fn check_same(
    field: &'static str,
    values: &[f32],
    others: &[f32],
    reason: &'static str,
) -> Result<()> {
    check(values.len() == others.len(), field, reason)
}

fn check_finite(field: &'static str, values: &[f32]) -> Result<()> {
    let finite = values.iter().all(|value| value.is_finite());
    check(finite, field, "must be finite")
}

fn check(holds: bool, field: &'static str, reason: &'static str) -> Result<()> {
    match holds {
        true => Ok(()),
        false => Err(Error::InvalidConfig { field, reason }),
    }
}

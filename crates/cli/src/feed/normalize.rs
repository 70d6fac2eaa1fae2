//! Which field is normalised, and how its channels lie.

use pinlane::Normalize;
use pinlane::load::{DeviceTransform, Dtype, Field, FieldShape};
use pinlane_report::FeedNormalize;

use super::words::{Factors, To};
use crate::output::UsageError;

/// A field that the device makes numbers of.
pub(super) struct Normalized {
    field: String,
    finish: DeviceTransform,
    told: FeedNormalize,
}

impl Normalized {
    /// The field that the factors are for.
    pub(super) fn new(factors: &Factors, To(to): To, fields: &[Field]) -> Result<Self, UsageError> {
        let field = find(factors.field.as_deref(), fields)?;
        let channels = factors.mean.len();
        let inner = inner(field, channels)?;
        let normalize = Normalize::mean_std(&factors.mean, &factors.std, inner)
            .map_err(|error| UsageError::new(format!("--normalize: {error}")))?;
        Ok(Self {
            field: field.name().to_owned(),
            finish: DeviceTransform::Normalize { normalize, to },
            told: FeedNormalize {
                field: field.name().to_owned(),
                to: to.name().to_owned(),
                mean: factors.mean.clone(),
                std: factors.std.clone(),
                inner: inner as u64,
            },
        })
    }

    /// The step of the loader.
    pub(super) fn step(&self) -> (String, DeviceTransform) {
        (self.field.clone(), self.finish.clone())
    }

    /// For the report.
    pub(super) fn told(&self) -> FeedNormalize {
        self.told.clone()
    }
}

fn find<'a>(name: Option<&str>, fields: &'a [Field]) -> Result<&'a Field, UsageError> {
    let names = |fields: &[&Field]| {
        let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
        names.join(", ")
    };
    let all: Vec<&Field> = fields.iter().collect();
    if let Some(name) = name {
        let found = fields.iter().find(|field| field.name() == name);
        return found.ok_or_else(|| {
            UsageError::new(format!(
                "--normalize: there is no field `{name}`; choose one of {}",
                names(&all)
            ))
        });
    }
    let bytes = fields.iter().filter(|field| field.dtype() == Dtype::U8);
    let bytes: Vec<&Field> = bytes.collect();
    match bytes.as_slice() {
        [one] => Ok(one),
        [] => Err(UsageError::new(format!(
            "--normalize makes numbers of u8, and no field holds u8: {}; leave it out",
            names(&all)
        ))),
        several => Err(UsageError::new(format!(
            "--normalize: several fields hold u8; name one in front, such as --normalize {}=…: {}",
            several[0].name(),
            names(several)
        ))),
    }
}

/// Elements in a row of one channel: planes where the first dimension is that of the channels, else
/// pixels that hold all of them.
fn inner(field: &Field, channels: usize) -> Result<usize, UsageError> {
    let shape: &[usize] = match field.shape() {
        FieldShape::Fixed(shape) => shape,
        FieldShape::Variable { .. } => &[],
    };
    if shape.first() == Some(&channels) {
        return Ok(shape[1..].iter().product::<usize>().max(1));
    }
    if channels == 1 || shape.last() == Some(&channels) {
        return Ok(1);
    }
    Err(UsageError::new(format!(
        "--normalize has {channels} channels, but neither the first nor the last dimension of field \
         `{}` is {channels}: {shape:?}; give one mean and deviation for each channel, or one for all",
        field.name()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_come_first_or_last() {
        let field = |shape: &[usize]| Field::fixed("a", Dtype::U8, shape);
        for (shape, channels, expected) in [
            (&[3, 224, 224][..], 3, Some(224 * 224)),
            (&[224, 224, 3], 3, Some(1)),
            (&[3], 3, Some(1)),
            (&[3, 3], 3, Some(3)),
            (&[224, 224], 1, Some(1)),
            (&[1, 28, 28], 1, Some(784)),
            (&[], 1, Some(1)),
            (&[224, 3, 224], 3, None),
            (&[4, 8], 3, None),
        ] {
            let found = inner(&field(shape), channels).ok();
            assert_eq!(found, expected, "{shape:?}, {channels}");
        }
        let variable = Field::variable("a", Dtype::U8, 9);
        assert!(inner(&variable, 1).is_ok() && inner(&variable, 3).is_err());
    }
}

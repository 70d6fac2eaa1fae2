//! Which field to normalize, and how its channels are laid out.

use pinlane::Normalize;
use pinlane::load::{DeviceTransform, Dtype, Field, FieldShape};
use pinlane_report::FeedNormalize;

use super::args::MeanStd;
use crate::input_error::UsageError;

/// The field to normalize on the device: for the loader's configuration, and for the report.
pub(super) fn step(
    factors: &MeanStd,
    to: Dtype,
    fields: &[Field],
) -> Result<((String, DeviceTransform), FeedNormalize), UsageError> {
    let field = find(factors.field.as_deref(), fields)?;
    let inner = inner(field, factors.mean.len())?;
    let normalize = Normalize::mean_std(&factors.mean, &factors.std, inner)
        .map_err(|error| UsageError(format!("--normalize: {error}")))?;
    let transform = DeviceTransform::Normalize { normalize, to };
    let report = FeedNormalize {
        field: field.name().to_owned(),
        to: to.name().to_owned(),
        mean: factors.mean.clone(),
        std: factors.std.clone(),
        inner: inner as u64,
    };
    Ok(((report.field.clone(), transform), report))
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
            UsageError(format!(
                "--normalize: there is no field `{name}`; use one of {}",
                names(&all)
            ))
        });
    }
    let mut bytes = all.clone();
    bytes.retain(|field| field.dtype() == Dtype::U8);
    match bytes.as_slice() {
        [one] => Ok(one),
        [] => Err(UsageError(format!(
            "--normalize needs a u8 field, but there is none: {}; drop --normalize",
            names(&all)
        ))),
        several => Err(UsageError(format!(
            "--normalize: several fields are u8; name one, such as --normalize {}=…: {}",
            several[0].name(),
            names(several)
        ))),
    }
}

/// Consecutive elements of one channel: a plane if channels are the first dimension, 1 if they are the last.
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
    Err(UsageError(format!(
        "--normalize has {channels} channels, but neither the first nor the last dimension of field \
         `{}` is {channels}: {shape:?}; give one mean and deviation per channel, or one for all",
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

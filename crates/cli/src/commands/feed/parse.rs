//! Values of the flags.

use pinlane::Normalize;
use pinlane::load::{Dtype, Field};

use crate::parse::{dtype, duration, number};

/// A longer kernel would delay Ctrl-C.
const KERNEL_NS_MAX: u64 = 400_000_000;

/// Dimensions, outermost first; empty for a scalar.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Shape(pub(super) Vec<usize>);

/// The files with an extension, and their field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TarField {
    pub(super) extension: String,
    pub(super) field: Field,
}

/// Means and standard deviations of a field.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct MeanStd {
    pub(super) field: Option<String>,
    pub(super) mean: Vec<f32>,
    pub(super) std: Vec<f32>,
}

pub(super) fn workers(text: &str) -> Result<usize, String> {
    number::within(text, 0..=256).and_then(number::to_usize)
}

pub(super) fn prefetch(text: &str) -> Result<usize, String> {
    number::within(text, 1..=1024).and_then(number::to_usize)
}

pub(super) fn epochs(text: &str) -> Result<u64, String> {
    number::within(text, 1..=u64::MAX)
}

pub(super) fn seed(text: &str) -> Result<u64, String> {
    number::within(text, 0..=u64::MAX)
}

pub(super) fn normalized_type(text: &str) -> Result<Dtype, String> {
    dtype::one_of(text, &[Dtype::F32, Dtype::Bf16])
}

/// Such as `3x224x224`.
pub(super) fn shape(text: &str) -> Result<Shape, String> {
    let dimension = |text: &str| text.parse::<usize>().ok().filter(|dim| *dim > 0);
    let shape: Option<Vec<usize>> = text.split('x').map(dimension).collect();
    shape
        .map(Shape)
        .ok_or_else(|| "not a shape; use dimensions separated by x, such as 3x224x224".into())
}

/// Such as `cls=u8:..8`, `id=i64:`, `img=u8:3x224x224`, `jpg=u8:..500000`.
pub(super) fn tar_field(text: &str) -> Result<TarField, String> {
    let form = "use EXTENSION=TYPE:SHAPE, such as img=u8:3x224x224, jpg=u8:..500000, cls=u8:..8 for text or \
                id=i64: for an integer";
    let (extension, rest) = text.split_once('=').ok_or(form)?;
    let (name, extent) = rest.split_once(':').ok_or(form)?;
    if extension.is_empty() || extension.starts_with('.') {
        return Err(format!("the extension must not start with a dot; {form}"));
    }
    let dtype = dtype::any(name)?;
    let field = match (extent, extent.strip_prefix("..")) {
        ("", _) => Field::fixed(extension, dtype, []),
        (_, Some(most)) => Field::variable(extension, dtype, number::at_least_1(most)?),
        (_, None) => Field::fixed(extension, dtype, shape(extent)?.0),
    };
    Ok(TarField {
        extension: extension.to_owned(),
        field,
    })
}

/// Such as `0.485,0.456,0.406/0.229,0.224,0.225`, optionally with `image=` in front.
pub(super) fn mean_std(text: &str) -> Result<MeanStd, String> {
    let form = "use means, a slash and standard deviations, such as \
                0.485,0.456,0.406/0.229,0.224,0.225";
    let (field, numbers) = match text.rsplit_once('=') {
        Some((field, numbers)) => (Some(field.to_owned()), numbers),
        None => (None, text),
    };
    let list = |text: &str| -> Option<Vec<f32>> {
        text.split(',')
            .map(|number| number.trim().parse().ok())
            .collect()
    };
    let (mean, std) = numbers.split_once('/').ok_or(form)?;
    let (mean, std) = (list(mean).ok_or(form)?, list(std).ok_or(form)?);
    // A negative deviation would invert the images.
    if let Some(wrong) = std.iter().find(|std| std.is_nan() || **std <= 0.0) {
        return Err(format!(
            "a standard deviation must be more than 0, not {wrong}; {form}"
        ));
    }
    // Checks the numbers; the layout of the channels is not known yet.
    Normalize::mean_std(&mean, &std, 1).map_err(|error| format!("{error}; {form}"))?;
    // Factors for bytes from 0 to 255 would map everything to about the same number.
    if let Some(large) = mean.iter().chain(&std).find(|number| **number > 1.0) {
        return Err(format!(
            "means and standard deviations must be for values from 0 to 1, because each byte is divided by \
             255 first; divide {large} and the others by 255"
        ));
    }
    Ok(MeanStd { field, mean, std })
}

pub(super) fn time(text: &str) -> Result<u64, String> {
    match duration::parse(text)? {
        0 => Err("must be more than 0, such as 5s".to_owned()),
        ns => Ok(ns),
    }
}

pub(super) fn kernel(text: &str) -> Result<u64, String> {
    match duration::parse(text)? {
        0 => Err("must be more than 0, such as 20ms; drop --kernel to run none".to_owned()),
        ns if ns > KERNEL_NS_MAX => {
            Err("must be at most 400ms, so that Ctrl-C does not have to wait".to_owned())
        }
        ns => Ok(ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_archives() {
        for (text, expected) in [
            (
                "img=u8:3x224x224",
                Field::fixed("img", Dtype::U8, [3, 224, 224]),
            ),
            ("cls=i64:", Field::fixed("cls", Dtype::I64, [])),
            ("seg.png=U8:..10", Field::variable("seg.png", Dtype::U8, 10)),
        ] {
            assert_eq!(tar_field(text).map(|found| found.field), Ok(expected));
        }
        for (text, reason) in [
            ("", "EXTENSION=TYPE:SHAPE"),
            ("jpg", "EXTENSION=TYPE:SHAPE"),
            ("jpg=u8", "EXTENSION=TYPE:SHAPE"),
            ("=u8:3", "must not start with a dot"),
            (".jpg=u8:3", "must not start with a dot"),
            ("jpg=u7:3", "bf16"),
            ("jpg=u8:3x", "not a shape"),
            ("jpg=u8:0", "not a shape"),
            ("jpg=u8:..0", "at least 1"),
            ("jpg=u8:..", "a whole number"),
            ("jpg=u8:-3", "not a shape"),
        ] {
            let error = tar_field(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn means_and_deviations() {
        let found = mean_std("0.5, 0.25/1,0.5").expect("two channels");
        assert_eq!((found.mean, found.std), (vec![0.5, 0.25], vec![1.0, 0.5]));
        let found = mean_std("a=b=0.5/1").expect("one channel");
        assert_eq!(found.field.as_deref(), Some("a=b"));
        for (text, reason) in [
            ("", "a slash"),
            ("0.5", "a slash"),
            ("0.5/", "a slash"),
            ("0.5/x", "a slash"),
            ("0.5,0.5/1", "as many as mean"),
            ("0.5/0", "not 0;"),
            ("0.5,0.5/1,-0.2", "not -0.2;"),
            ("0.5/nan", "not NaN;"),
            ("123.675/58.395", "divide 123.675 and"),
            ("0.5,0.5/0.2,58.395", "divide 58.395 and"),
            ("0.5/inf", "must be finite"),
            ("nan/1", "must be finite"),
            ("0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0/1", "1 to 16"),
        ] {
            let error = mean_std(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn times_and_numbers() {
        assert_eq!(kernel("20ms"), Ok(20_000_000));
        assert!(kernel("0").is_err() && kernel("1s").is_err_and(|error| error.contains("400ms")));
        assert!(time("0s").is_err() && time("5").is_err());
        assert!(workers("257").is_err() && workers("0") == Ok(0) && prefetch("0").is_err());
        assert_eq!(normalized_type("torch.bfloat16"), Ok(Dtype::Bf16));
        assert!(normalized_type("f16").is_err_and(|error| error.contains("f32, bf16")));
    }
}

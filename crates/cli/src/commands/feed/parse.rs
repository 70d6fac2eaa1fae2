//! Words of the command line.

use pinlane::Normalize;
use pinlane::load::{Dtype, Field};

use crate::{dtype, duration, number};

/// A kernel that is much longer would keep Ctrl-C waiting.
const KERNEL_AT_MOST_NS: u64 = 400_000_000;

/// Dimensions, outermost first; none for a single number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Shape(pub(super) Vec<usize>);

/// Files with an extension, and what they hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TarField {
    pub(super) extension: String,
    pub(super) field: Field,
}

/// Means and standard deviations, and the field that they are for.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Factors {
    pub(super) field: Option<String>,
    pub(super) mean: Vec<f32>,
    pub(super) std: Vec<f32>,
}

/// What the device makes of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct To(pub(super) Dtype);

/// Threads, as many as the loader takes.
pub(super) fn workers(text: &str) -> Result<usize, String> {
    number::within(text, 0..=256).and_then(number::fitting)
}

/// Batches ahead, as many as the loader takes.
pub(super) fn prefetch(text: &str) -> Result<usize, String> {
    number::within(text, 1..=1024).and_then(number::fitting)
}

/// Epochs, at least one.
pub(super) fn epochs(text: &str) -> Result<u64, String> {
    number::within(text, 1..=u64::MAX)
}

/// Any number.
pub(super) fn seed(text: &str) -> Result<u64, String> {
    number::within(text, 0..=u64::MAX)
}

/// `f32` or `bf16`, or another name for them.
pub(super) fn to(text: &str) -> Result<To, String> {
    dtype::one_of(text, &[Dtype::F32, Dtype::Bf16]).map(To)
}

/// `3x224x224`.
pub(super) fn shape(text: &str) -> Result<Shape, String> {
    let dimension = |text: &str| text.parse::<usize>().ok().filter(|dim| *dim > 0);
    let shape: Option<Vec<usize>> = text.split('x').map(dimension).collect();
    shape
        .map(Shape)
        .ok_or_else(|| "not a shape; write whole numbers with x between, such as 3x224x224".into())
}

/// `cls=u8:..8`, `id=i64:`, `img=u8:3x224x224`, `jpg=u8:..500000`.
pub(super) fn tar_field(text: &str) -> Result<TarField, String> {
    let form = "write the extension, `=`, the type, `:` and the shape, such as img=u8:3x224x224, \
                jpg=u8:..500000, cls=u8:..8 for text or id=i64: for a number";
    let (extension, rest) = text.split_once('=').ok_or(form)?;
    let (name, extent) = rest.split_once(':').ok_or(form)?;
    if extension.is_empty() || extension.starts_with('.') {
        return Err(format!("the extension stands without its dot; {form}"));
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

/// `0.485,0.456,0.406/0.229,0.224,0.225`, with or without `image=` in front.
pub(super) fn factors(text: &str) -> Result<Factors, String> {
    let form = "write means, a slash and standard deviations, such as \
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
    // A network that learned with one of another sign would see its images inverted.
    if let Some(wrong) = std.iter().find(|std| std.is_nan() || **std <= 0.0) {
        return Err(format!(
            "a standard deviation is more than 0, unlike {wrong}; {form}"
        ));
    }
    // Whether these can be: how channels lie comes later.
    Normalize::mean_std(&mean, &std, 1).map_err(|error| format!("{error}; {form}"))?;
    // Those of bytes from 0 to 255 would make about the same number of everything.
    if let Some(large) = mean.iter().chain(&std).find(|number| **number > 1.0) {
        return Err(format!(
            "means and standard deviations are those of numbers from 0 to 1, since each byte is divided by \
             255 first: divide {large} by 255, too, and the others"
        ));
    }
    Ok(Factors { field, mean, std })
}

/// Time to run.
pub(super) fn time(text: &str) -> Result<u64, String> {
    match duration::parse(text)? {
        0 => Err("no time to do anything in; write a time such as 5s".to_owned()),
        ns => Ok(ns),
    }
}

/// Time of a kernel.
pub(super) fn kernel(text: &str) -> Result<u64, String> {
    match duration::parse(text)? {
        0 => Err("no time; write a time such as 20ms, or leave --kernel out".to_owned()),
        ns if ns > KERNEL_AT_MOST_NS => {
            Err("at most 400ms, so that Ctrl-C need not wait for it".to_owned())
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
            ("", "the extension, `=`"),
            ("jpg", "the extension, `=`"),
            ("jpg=u8", "the extension, `=`"),
            ("=u8:3", "without its dot"),
            (".jpg=u8:3", "without its dot"),
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
        let found = factors("0.5, 0.25/1,0.5").expect("two channels");
        assert_eq!((found.mean, found.std), (vec![0.5, 0.25], vec![1.0, 0.5]));
        let found = factors("a=b=0.5/1").expect("one channel");
        assert_eq!(found.field.as_deref(), Some("a=b"));
        for (text, reason) in [
            ("", "a slash"),
            ("0.5", "a slash"),
            ("0.5/", "a slash"),
            ("0.5/x", "a slash"),
            ("0.5,0.5/1", "as many as mean"),
            ("0.5/0", "unlike 0;"),
            ("0.5,0.5/1,-0.2", "unlike -0.2;"),
            ("0.5/nan", "unlike NaN;"),
            ("123.675/58.395", "divide 123.675 by 255"),
            ("0.5,0.5/0.2,58.395", "divide 58.395 by 255"),
            ("0.5/inf", "must be finite"),
            ("nan/1", "must be finite"),
            ("0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0/1", "1 to 16"),
        ] {
            let error = factors(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn times_and_numbers() {
        assert_eq!(kernel("20ms"), Ok(20_000_000));
        assert!(kernel("0").is_err() && kernel("1s").is_err_and(|error| error.contains("400ms")));
        assert!(time("0s").is_err() && time("5").is_err());
        assert!(workers("257").is_err() && workers("0") == Ok(0) && prefetch("0").is_err());
        assert_eq!(to("torch.bfloat16"), Ok(To(Dtype::Bf16)));
        assert!(to("f16").is_err_and(|error| error.contains("f32, bf16")));
    }
}

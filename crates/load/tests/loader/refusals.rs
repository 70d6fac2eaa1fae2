//! Invalid configurations, with the reason.

use pinlane::Normalize;
use pinlane::load::dataset::{Dataset, Field, SampleError, SampleMut};
use pinlane::load::{DeviceTransform, Dtype, Loader, LoaderConfig, LoaderError};

use super::support::{Made, Rig, config};

struct Odd(Vec<Field>);

impl Dataset for Odd {
    fn len(&self) -> usize {
        10
    }

    fn fields(&self) -> &[Field] {
        &self.0
    }

    fn read(&self, _: usize, _: &mut SampleMut<'_>) -> Result<(), SampleError> {
        Ok(())
    }
}

fn refused(dataset: impl Dataset, config: LoaderConfig, text: &str) {
    let rig = Rig::new();
    let error = Loader::new(&rig.device, dataset, config).expect_err(text);
    assert_eq!(error.to_string(), text);
    rig.assert_clean();
}

#[test]
fn settings() {
    for prefetch in [0, 1025, usize::MAX] {
        let mut odd = config(4, 1);
        odd.prefetch = prefetch;
        let text = format!("prefetch: {prefetch} is not from 1 to 1024");
        refused(Made::new(9), odd, &text);
    }
    refused(
        Made::new(9),
        config(4, 257),
        "workers: 257 is more than 256",
    );
    let rig = Rig::new();
    let error = Loader::new(&rig.device, Made::new(9), config(0, 1)).expect_err("no samples");
    assert!(matches!(error, LoaderError::Order(_)), "{error}");
}

#[test]
fn fields() {
    let twice = vec![
        Field::fixed("a", Dtype::U8, []),
        Field::variable("a", Dtype::U8, 3),
    ];
    let text = "dataset: field `a`: another field has the same name";
    refused(Odd(twice), config(4, 1), text);
    let huge = usize::MAX / 4;
    let text = "dataset: field `a`: a sample of it does not fit into the address space";
    for field in [
        Field::fixed("a", Dtype::F32, [huge]),
        Field::variable("a", Dtype::F64, usize::MAX),
    ] {
        refused(Odd(vec![field]), config(4, 1), text);
    }
    let large = Field::fixed("a", Dtype::F32, [huge / 2]);
    let text = "batch: 8 samples do not fit into the address space";
    refused(Odd(vec![large]), config(8, 1), text);
}

#[test]
fn steps() {
    let with = |names: &[&str]| {
        let transform = DeviceTransform::U8ToF32 {
            scale: 1.0,
            offset: 0.0,
        };
        let named = |name: &&str| (name.to_string(), transform.clone());
        config(4, 1).device_transforms(names.iter().map(named).collect())
    };
    let text = "device_transforms: field `picture`: the dataset has no such field";
    refused(Made::new(9), with(&["picture"]), text);
    let text = "device_transforms: field `label`: it holds U32, not U8";
    refused(Made::new(9), with(&["image", "label"]), text);
    let text = "device_transforms: field `image`: it has two transforms";
    refused(Made::new(9), with(&["image", "image"]), text);
}

#[test]
fn channels() {
    let with = |name: &str, channels: usize, inner: usize, to: Dtype| {
        let factors = vec![1.0; channels];
        let normalize = Normalize::new(&factors, &factors, inner).expect("usual factors");
        let transform = DeviceTransform::Normalize { normalize, to };
        config(4, 1).device_transforms(vec![(name.to_owned(), transform)])
    };
    let text = "device_transforms: field `label`: it holds U32, not U8";
    refused(Made::new(9), with("label", 1, 1, Dtype::F32), text);
    for (to, name) in [(Dtype::F16, "F16"), (Dtype::U8, "U8"), (Dtype::F64, "F64")] {
        let text = format!(
            "device_transforms: field `image`: it can be normalized to F32 or BF16, not {name}"
        );
        refused(Made::new(9), with("image", 3, 4, to), &text);
    }
    for (channels, inner) in [(5, 1), (3, 5), (1, 24), (16, usize::MAX)] {
        let text = format!(
            "device_transforms: field `image`: a sample has 12 elements, not a multiple of \
             {channels} channels times {inner} elements"
        );
        refused(
            Made::new(9),
            with("image", channels, inner, Dtype::F32),
            &text,
        );
    }
    let text = "device_transforms: field `text`: a variable field has one channel, not 2";
    refused(Made::new(9), with("text", 2, 1, Dtype::F32), text);
}

#[test]
fn elements_of_another_size() {
    let rig = Rig::new();
    let loader = rig.loader(Made::new(9), config(4, 1));
    let first = loader.epoch(0).expect("no epoch is running").next();
    let batch = first.expect("a batch").expect("no error");
    let tokens = batch.field("tokens").expect("a field");
    assert!(tokens.typed::<u16>().is_ok());
    let error = tokens.typed::<u32>().map(drop).expect_err("they are u16");
    let text = "field `tokens` holds U16, not elements of 4 bytes";
    assert_eq!(error.to_string(), text);
    assert!(batch.field("picture").is_none());
    drop((batch, loader));
    rig.assert_clean();
}

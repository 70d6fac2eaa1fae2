//! The source of a sample's error is not lost.

use std::error::Error;
use std::fmt;
use std::io;

use pinlane::load::dataset::{Dataset, Field, SampleError, SampleMut};
use pinlane::load::{Dtype, OnError};

use super::support::{Rig, config};

#[derive(Debug)]
struct Undecoded(io::Error);

impl fmt::Display for Undecoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the image cannot be decoded")
    }
}

impl Error for Undecoded {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

/// Is its own source.
#[derive(Debug)]
struct Endless;

impl fmt::Display for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("round")
    }
}

impl Error for Endless {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self)
    }
}

/// Samples 1, 2 and 3 are bad.
struct Images([Field; 1]);

impl Dataset for Images {
    fn len(&self) -> usize {
        5
    }

    fn fields(&self) -> &[Field] {
        &self.0
    }

    fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<(), SampleError> {
        sample.fixed(0).fill(0);
        match index {
            1 => Err(Undecoded(io::Error::other("a cable is loose")).into()),
            2 => Err(Endless.into()),
            3 => Err("no colours".into()),
            _ => Ok(()),
        }
    }

    fn origin(&self, index: usize) -> String {
        match index {
            2 => "sample 2".to_owned(),
            3 => panic!("nobody knows"),
            _ => format!("images.tar/{index}.jpg"),
        }
    }
}

fn images() -> Images {
    Images([Field::fixed("image", Dtype::U8, [2])])
}

#[test]
fn an_error_leads_to_its_source() {
    let rig = Rig::new();
    let loader = rig.loader(images(), config(5, 1));
    let first = loader.epoch(0).expect("no epoch is running").next();
    let error = first.expect("an error").expect_err("a bad sample");
    let text = "batch 0, sample 1 (images.tar/1.jpg): the image cannot be decoded";
    assert_eq!(error.to_string(), text);
    let cause = error.source().expect("the dataset's error");
    assert!(cause.is::<Undecoded>(), "{cause:?}");
    let behind = cause.source().expect("what it was made from");
    assert_eq!(behind.to_string(), "a cable is loose");
    drop(loader);
    rig.assert_clean();
}

#[test]
fn skipped_samples_have_origin_and_reason() {
    let rig = Rig::new();
    let config = config(5, 2).on_error(OnError::Skip);
    let loader = rig.loader(images(), config);
    let first = loader.epoch(0).expect("no epoch is running").next();
    let batch = first.expect("a batch").expect("they are left out");
    assert_eq!(batch.indices(), [0, 4]);
    let skipped: Vec<String> = batch.skipped().iter().map(ToString::to_string).collect();
    let expected = [
        "sample 1 (images.tar/1.jpg): the image cannot be decoded: a cable is loose",
        "sample 2: round",
        "sample 3 (of unknown origin: nobody knows): no colours",
    ];
    assert_eq!(skipped, expected);
    assert_eq!(batch.skipped()[0].origin, "images.tar/1.jpg");

    drop((batch, loader));
    rig.assert_clean();
}

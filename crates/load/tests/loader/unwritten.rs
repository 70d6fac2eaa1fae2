//! Samples that a dataset does not write completely, or replaces.

use pinlane::load::dataset::{Dataset, Field, SampleMut, from_fn};
use pinlane::load::{Dtype, OnError};

use super::support::{Rig, config};
use pinlane_testing::must_return;

/// Numbers, except that some samples leave the field `high` unwritten.
fn forgetful(forgotten: &'static [usize]) -> impl Dataset {
    let fields = [
        Field::fixed("low", Dtype::U8, [2]),
        Field::fixed("nothing", Dtype::U32, [3, 0]),
        Field::fixed("high", Dtype::U8, [2]),
    ];
    from_fn(12, fields, |index, sample| {
        sample.fixed(0).fill(index as u8);
        if !forgotten.contains(&index) {
            sample.fixed(2).fill(100 + index as u8);
        }
        Ok(())
    })
}

/// Old data in the slot never passes as the sample's.
#[test]
fn a_fixed_field_that_is_not_written_is_an_error() {
    for workers in [0, 1, 3] {
        must_return(move || {
            let rig = Rig::new();
            let loader = rig.loader(forgetful(&[9]), config(2, workers));
            for _ in 0..2 {
                let mut epoch = loader.epoch(0).expect("no epoch is running");
                let good = epoch.by_ref().take(4).filter(Result::is_ok).count();
                assert_eq!(good, 4);
                let error = epoch.next().expect("an error").expect_err("not written");
                let text = "batch 4, sample 9: field `high` was not written";
                assert_eq!(error.to_string(), text);
            }
            drop(loader);
            rig.assert_clean();
        });
    }
}

#[test]
fn a_sample_with_an_unwritten_field_is_skipped() {
    let rig = Rig::new();
    let config = config(3, 2).on_error(OnError::Skip);
    let loader = rig.loader(forgetful(&[0, 7, 8]), config);
    let mut seen = Vec::new();
    for batch in loader.epoch(0).expect("no epoch is running") {
        let batch = batch.expect("they are left out");
        let high = batch.field("high").expect("a field").bytes();
        let high = rig.stream.copy_to_vec(high).expect("the device is alive");
        let expected = batch.indices().iter().flat_map(|&at| [100 + at as u8; 2]);
        assert!(high.into_iter().eq(expected));
        seen.extend(batch.indices().to_vec());
    }
    assert_eq!(seen, [1, 2, 3, 4, 5, 6, 9, 10, 11]);
    drop(loader);
    rig.assert_clean();
}

/// The first batch must fail with this error.
#[track_caller]
fn refused(dataset: impl Dataset, text: &str) {
    let rig = Rig::new();
    let loader = rig.loader(dataset, config(1, 1));
    let first = loader.epoch(0).expect("no epoch is running").next();
    let error = first.expect("an error").expect_err("it is not the sample");
    assert_eq!(error.to_string(), text);
    drop(loader);
    rig.assert_clean();
}

fn field(fixed: bool) -> Field {
    match fixed {
        true => Field::fixed("bytes", Dtype::U8, [4]),
        false => Field::variable("bytes", Dtype::U8, 4),
    }
}

/// A complete sample of the dataset's own, of this many bytes.
fn other(fixed: bool, bytes: usize) -> SampleMut<'static> {
    let field = Box::leak(Box::new(field(fixed)));
    let mut other = SampleMut::new();
    other.push(field, Box::leak(vec![7; bytes].into()));
    match fixed {
        true => _ = other.fixed(0),
        false => _ = other.variable(0, bytes).expect("there is room"),
    }
    other
}

#[test]
fn replacing_the_sample_is_an_error() {
    let text = "batch 0, sample 0: the dataset replaced the sample it was given by another one";
    for bytes in [0, 1, 4, 100] {
        for fixed in [true, false] {
            let swapper = from_fn(1, [field(fixed)], move |_, sample| {
                *sample = other(fixed, bytes);
                Ok(())
            });
            refused(swapper, text);
        }
    }
    let none = from_fn(1, [Field::fixed("bytes", Dtype::U8, [4])], |_, sample| {
        *sample = std::mem::take(sample).recycled();
        Ok(())
    });
    refused(none, text);
}

#[test]
fn taking_the_sample_and_putting_it_back_is_fine() {
    let rig = Rig::new();
    let field = [Field::fixed("byte", Dtype::U8, [1])];
    let careful = from_fn(1, field, |_, sample| {
        let mut taken = std::mem::take(sample);
        taken.fixed(0).fill(9);
        *sample = taken;
        Ok(())
    });
    let loader = rig.loader(careful, config(1, 1));
    let first = loader.epoch(0).expect("no epoch is running").next();
    let batch = first.expect("a batch").expect("no error");
    let byte = batch.field("byte").expect("a field").bytes();
    assert_eq!(rig.stream.copy_to_vec(byte).expect("alive"), [9]);
    drop((batch, loader));
    rig.assert_clean();
}

//! Samples that cannot be read.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use pinlane::load::dataset::{Dataset, Field, SampleError, SampleMut};
use pinlane::load::{Dtype, LoaderError, OnError};

use super::support::{Made, Rig, Trouble, config, drain};
use pinlane_testing::must_return;

const SAMPLES: usize = 23;

fn set(indices: &[usize]) -> BTreeSet<usize> {
    indices.iter().copied().collect()
}

/// The epoch yields the batches before that of `at`, then the error. The loader can be used again.
fn fails(trouble: Trouble, at: usize, text: &str) {
    for workers in [0, 1, 4] {
        let (trouble, text) = (trouble.clone(), text.to_owned());
        must_return(move || {
            let rig = Rig::new();
            let loader = rig.loader(Made::with(SAMPLES, trouble), config(4, workers));
            for _ in 0..3 {
                let (batches, error) = drain(&rig, loader.epoch(0).expect("the last has ended"));
                let expected: Vec<_> = (0..at / 4 * 4).collect();
                assert_eq!(batches.concat(), expected);
                let error = error.expect("it fails");
                assert_eq!(error.to_string(), text);
                let place = match error {
                    LoaderError::Sample {
                        batch,
                        index,
                        origin,
                        ..
                    }
                    | LoaderError::DatasetPanicked {
                        batch,
                        index,
                        origin,
                        ..
                    } => (batch, index, origin),
                    other => panic!("{other:?}"),
                };
                assert_eq!(place, (at as u64 / 4, at, format!("made.tar/{at}")));
                assert_eq!(loader.state().batch, at as u64 / 4);
            }
            drop(loader);
            rig.assert_clean();
        });
    }
}

#[test]
fn the_first_failure_is_reported_with_its_origin() {
    for at in [0, 3, 9, 22] {
        let mut trouble = Trouble {
            fail: (at..SAMPLES).collect(),
            ..Trouble::default()
        };
        let text = format!(
            "batch {}, sample {at} (made.tar/{at}): broken on purpose",
            at / 4
        );
        fails(trouble.clone(), at, &text);
        trouble.panic = set(&[22]);
        fails(trouble, at, &text);
    }
}

#[test]
fn a_panic_is_an_error() {
    let trouble = Trouble {
        panic: set(&[6, 7, 15]),
        ..Trouble::default()
    };
    let text = "batch 1, sample 6 (made.tar/6): the dataset panicked: sample 6 panics";
    fails(trouble, 6, text);
}

#[test]
fn invalid_fields_are_errors() {
    let trouble = Trouble {
        forget: set(&[10]),
        ..Trouble::default()
    };
    let text = "batch 2, sample 10 (made.tar/10): field `text` was not written";
    fails(trouble, 10, text);
    let trouble = Trouble {
        half: set(&[10]),
        ..Trouble::default()
    };
    let text =
        "batch 2, sample 10 (made.tar/10): field `tokens` has 3 bytes, not a whole number of U16";
    fails(trouble, 10, text);
    let trouble = Trouble {
        huge: set(&[10]),
        ..Trouble::default()
    };
    let text = "batch 2, sample 10 (made.tar/10): field `text` has 6 bytes; the limit is 5";
    fails(trouble, 10, text);
}

#[test]
fn skipped_samples_are_left_out_and_counted() {
    let bad = Trouble {
        fail: set(&[0, 5, 8, 9, 10, 11, 22]),
        forget: set(&[6]),
        half: set(&[18]),
        ..Trouble::default()
    };
    let skipped = [0, 5, 6, 8, 9, 10, 11, 18, 22];
    for workers in [0, 1, 4] {
        let rig = Rig::new();
        let config = config(4, workers).on_error(OnError::Skip);
        let loader = rig.loader(Made::with(SAMPLES, bad.clone()), config);
        let mut reported = Vec::new();
        let mut numbers = 0;
        for (number, batch) in loader.epoch(0).expect("no epoch is running").enumerate() {
            let batch = batch.expect("they are skipped");
            rig.check(&batch);
            let samples = 4 * number..SAMPLES.min(4 * number + 4);
            let expected: Vec<_> = samples.filter(|at| !skipped.contains(at)).collect();
            assert_eq!(batch.indices(), expected);
            assert_eq!(
                (batch.len(), batch.is_empty()),
                (expected.len(), number == 2)
            );
            reported.extend(batch.skipped().to_vec());
            numbers += 1;
        }
        assert_eq!(numbers, 6);
        assert!(reported.iter().map(|sample| sample.index).eq(skipped));
        assert_eq!(reported[0].reason, "broken on purpose");
        assert_eq!(reported[2].reason, "field `text` was not written");
        let stats = loader.stats();
        assert_eq!((stats.skipped, stats.samples), (9, 14));
        drop(loader);
        rig.assert_clean();
    }
}

#[test]
fn a_panic_is_not_skipped() {
    let trouble = Trouble {
        fail: set(&[1]),
        panic: set(&[2]),
        ..Trouble::default()
    };
    let rig = Rig::new();
    let config = config(4, 2).on_error(OnError::Skip);
    let loader = rig.loader(Made::with(SAMPLES, trouble), config);
    let first = loader.epoch(0).expect("no epoch is running").next();
    let error = first.expect("a batch").expect_err("a panic");
    assert!(matches!(
        error,
        LoaderError::DatasetPanicked { index: 2, .. }
    ));
    drop(loader);
    rig.assert_clean();
}

/// Panics everywhere, with a payload that panics again when dropped.
struct Hostile {
    fields: [Field; 1],
    reads: AtomicUsize,
}

struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        panic!("again");
    }
}

impl Dataset for Hostile {
    fn len(&self) -> usize {
        10
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn read(&self, _: usize, sample: &mut SampleMut<'_>) -> Result<(), SampleError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        *sample = SampleMut::new();
        std::panic::panic_any(Grenade)
    }

    fn origin(&self, _: usize) -> String {
        panic!("no source")
    }
}

#[test]
fn a_hostile_dataset() {
    must_return(|| {
        let rig = Rig::new();
        let hostile = Hostile {
            fields: [Field::fixed("none", Dtype::U8, [1])],
            reads: AtomicUsize::new(0),
        };
        let loader = rig.loader(hostile, config(5, 2));
        let error = loader.epoch(0).expect("none").next().expect("a batch");
        let text = error.expect_err("it panics").to_string();
        let expected = "batch 0, sample 0 (of unknown origin: no source): the dataset \
                        panicked: no text";
        assert_eq!(text, expected);
        drop(loader);
        rig.assert_clean();
    });
}

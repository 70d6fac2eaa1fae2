//! Arrays in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinlane::load::{Arrays, Dataset, Dtype, Field, LoadError, LoadErrorKind};

use super::support::{read, sample};

fn image() -> Field {
    Field::fixed("image", Dtype::U16, [2, 2])
}

fn label() -> Field {
    Field::fixed("label", Dtype::U8, [])
}

#[test]
fn any_owner_of_bytes_works() {
    let images: Arc<[u8]> = (0..24).collect();
    let labels: Arc<[u8]> = Arc::new([7, 8, 9]);
    let shared = images.clone();
    let arrays = Arrays::from_memory(3, [(image(), images), (label(), labels)]).expect("good");
    assert_eq!((arrays.len(), arrays.origin(1)), (3, "row 1".to_owned()));
    assert_eq!(sample(&arrays, 1), [shared[8..16].to_vec(), vec![8]]);

    let fixed: &'static [u8] = b"abc";
    let arrays = Arrays::from_memory(3, [(label(), fixed)]).expect("good");
    let more = Arrays::from_memory(3, [(label(), vec![1_u8, 2, 3])]).expect("good");
    let both = arrays.and(more).expect("three samples each");
    assert_eq!(sample(&both, 2), [b"c".to_vec(), vec![3]]);
}

#[test]
fn lengths_are_checked() {
    let fault = |made: Result<Arrays, LoadError>| made.expect_err("a fault").kind().clone();
    let of = |samples: usize, field: Field, bytes: usize| {
        fault(Arrays::from_memory(samples, [(field, vec![0_u8; bytes])]))
    };
    let length = |bytes, samples, row_bytes| LoadErrorKind::ArrayLength {
        bytes,
        samples,
        row_bytes,
    };
    assert_eq!(of(3, image(), 23), length(23, 3, 8));
    assert_eq!(of(3, image(), 32), length(32, 3, 8));
    assert_eq!(of(usize::MAX, image(), 8), length(8, usize::MAX, 8));
    assert_eq!(
        of(3, Field::variable("text", Dtype::U8, 1), 3),
        LoadErrorKind::NotFixed
    );
    let large = Field::fixed("large", Dtype::F64, [usize::MAX, 2]);
    assert!(matches!(
        of(1, large, 0),
        LoadErrorKind::SizeOverflow { .. }
    ));
    let none: [(Field, Vec<u8>); 0] = [];
    assert_eq!(fault(Arrays::from_memory(3, none)), LoadErrorKind::NoFields);
}

#[test]
fn combined_arrays_need_the_same_number_of_samples() {
    let three = Arrays::from_memory(3, [(image(), vec![0; 24])]).expect("good");
    let two = Arrays::from_memory(2, [(label(), vec![0; 2])]).expect("good");
    let error = three.and(two).expect_err("3 and 2");
    assert_eq!(error.tensor(), Some("label"));
    let expected = LoadErrorKind::SamplesDiffer {
        samples: 2,
        other: "image".to_owned(),
        other_samples: 3,
    };
    assert_eq!(error.kind(), &expected);
}

/// Memory that returns another slice the second time.
#[test]
fn memory_that_changes_its_length_is_an_error_of_the_sample() {
    struct Fickle(Arc<AtomicBool>);
    impl AsRef<[u8]> for Fickle {
        fn as_ref(&self) -> &[u8] {
            match self.0.load(Ordering::Relaxed) {
                true => &[],
                false => &[1, 2, 3],
            }
        }
    }
    let gone = Arc::new(AtomicBool::new(false));
    let arrays = Arrays::from_memory(3, [(label(), Fickle(gone.clone()))]).expect("good");
    assert_eq!(sample(&arrays, 2), [[3]]);
    gone.store(true, Ordering::Relaxed);
    assert!(read(&arrays, 2).is_err());
}

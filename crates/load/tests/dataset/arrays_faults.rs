//! Invalid arrays, and files that change.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use pinlane::load::{Arrays, Catalog, Dataset, Dtype, Field, LoadError, LoadErrorKind};

use super::support::{Scratch, data, read, sample, sample_fault};

#[test]
fn arrays_have_the_same_number_of_rows() {
    let path = data().join("unequal.safetensors");
    let catalog = Catalog::open(&path).expect("a good file");
    let tensor = |name: &str| catalog.tensor(name).expect("it is there").clone();

    let error = Arrays::of(&catalog, &[tensor("few"), tensor("many")]).expect_err("4 and 9 rows");
    assert_eq!(
        (error.tensor(), error.file()),
        (Some("many"), Some(path.as_path()))
    );
    let expected = LoadErrorKind::SamplesDiffer {
        samples: 9,
        other: "few".to_owned(),
        other_samples: 4,
    };
    assert_eq!(error.kind(), &expected);

    let error = Arrays::of(&catalog, &[tensor("one"), tensor("many")]).expect_err("a scalar");
    assert_eq!(
        (error.tensor(), error.kind()),
        (Some("one"), &LoadErrorKind::NoRows)
    );
    let error = Arrays::of(&catalog, &[]).expect_err("nothing");
    assert_eq!(error.kind(), &LoadErrorKind::NoFields);
}

#[test]
fn rows_are_whole_bytes() {
    let header = r#"{"a":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]}}"#;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    file.extend([1, 2, 3]);
    let scratch = Scratch::new();
    let error = Arrays::open(scratch.file("nibbles.safetensors", file)).expect_err("half bytes");
    assert_eq!(error.tensor(), Some("a"));
    let dtype = Dtype::F4;
    assert!(
        matches!(error.kind(), LoadErrorKind::RowsSplitByte { dtype: found, .. } if *found == dtype)
    );
}

#[test]
fn tensors_of_another_catalog_are_refused() {
    let small = Catalog::open(data().join("npy/image.npy")).expect("a good file");
    let large = Catalog::open(data().join("unequal.safetensors")).expect("a good file");
    for tensor in large.tensors() {
        let error = Arrays::of(&small, std::slice::from_ref(tensor)).expect_err("not its own");
        assert_eq!(
            error.kind(),
            &LoadErrorKind::OtherCatalog,
            "{}",
            tensor.name()
        );
    }
    let many = Catalog::open(data().join("npy")).expect("good files");
    let last = many.tensor("mask").expect("it is there").clone(); // in the third file
    let error = Arrays::of(&small, &[last]).expect_err("there is one file");
    assert_eq!(
        (error.kind(), error.tensor()),
        (&LoadErrorKind::OtherCatalog, Some("mask"))
    );
}

#[test]
fn files_that_change_are_noticed() {
    let scratch = Scratch::new();
    let image = fs::read(data().join("npy/image.npy")).expect("the file");
    let open = |name: &str| {
        let path = scratch.file(name, &image);
        (Arrays::open(&path).expect("a good file"), path)
    };

    let (grown, path) = open("grown.npy");
    sample(&grown, 0);
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .expect("the file");
    file.write_all(b"more").expect("it is written");
    assert_eq!(sample_fault(&grown, 0), LoadErrorKind::FileChanged);

    let (cut, path) = open("cut.npy");
    sample(&cut, 6);
    let file = fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("the file");
    file.set_len(100).expect("it is cut");
    assert_eq!(sample_fault(&cut, 6), LoadErrorKind::FileChanged);

    // Replacing the file is no change: the opened one still exists.
    let (replaced, path) = open("replaced.npy");
    let before = sample(&replaced, 2);
    fs::rename(scratch.file("new.npy", b"new"), &path).expect("it is replaced");
    assert_eq!(sample(&replaced, 2), before);
}

/// Memory whose owner truncates a file each time it is read.
struct Truncates(PathBuf);

impl AsRef<[u8]> for Truncates {
    fn as_ref(&self) -> &[u8] {
        let file = fs::OpenOptions::new().write(true).open(&self.0);
        if let Ok(file) = file {
            file.set_len(100).expect("it is cut");
        }
        b"abc"
    }
}

#[test]
fn a_file_truncated_in_the_middle_of_a_read_is_an_error() {
    let scratch = Scratch::new();
    let path = scratch.path().join("image.npy");
    let field = Field::fixed("label", Dtype::U8, []);
    // Nothing to truncate yet. It is the first field, so it is read before the rows of the file.
    let first = Arrays::from_memory(3, [(field, Truncates(path.clone()))]).expect("good");

    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 10000), }\n";
    let mut image = b"\x93NUMPY\x01\0".to_vec();
    image.extend((header.len() as u16).to_le_bytes());
    image.extend(header.bytes());
    image.resize(image.len() + 30_000, 7);
    scratch.file("image.npy", image);
    let both = first.and(Arrays::open(&path).expect("a good file"));
    let both = both.expect("three samples each");
    let error = read(&both, 2).expect_err("the file is cut");
    let cause = error.cause().downcast_ref::<LoadError>();
    let cause = cause.expect("an error of loading");
    assert_eq!(cause.kind(), &LoadErrorKind::FileChanged);
    assert_eq!(cause.file(), Some(path.as_path()));
}

#[test]
fn files_that_change_between_catalog_and_arrays_are_refused() {
    let scratch = Scratch::new();
    let image = fs::read(data().join("npy/image.npy")).expect("the file");
    let path = scratch.file("image.npy", &image);
    let catalog = Catalog::open(&path).expect("a good file");
    scratch.file("image.npy", &image[..150]);
    let error = Arrays::of(&catalog, catalog.tensors()).expect_err("another file");
    assert_eq!(
        (error.kind(), error.file()),
        (&LoadErrorKind::FileChanged, Some(path.as_path()))
    );
}

#[test]
#[should_panic(expected = "there is no sample 7 of 7")]
fn an_index_past_the_end_panics() {
    let arrays = Arrays::open(data().join("npy/image.npy")).expect("a good file");
    assert_eq!(arrays.len(), 7);
    let _ = read(&arrays, 7);
}

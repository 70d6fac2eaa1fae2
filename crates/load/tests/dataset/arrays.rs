//! Arrays in files written by numpy and safetensors.

use std::collections::BTreeMap;
use std::fs;

use pinlane::load::{Arrays, Catalog, Dataset, Dtype, Field};

use super::allocation_counter::allocations;
use super::support::{Scratch, data, from_hex, sample};
use pinlane::load::SampleMut;

/// What the packages read: file, then field, then the rows.
fn expected() -> BTreeMap<String, BTreeMap<String, Vec<Vec<u8>>>> {
    let text = fs::read_to_string(data().join("arrays.tsv")).expect("the list");
    let mut files: BTreeMap<String, BTreeMap<String, Vec<Vec<u8>>>> = BTreeMap::new();
    for line in text.lines() {
        let [file, field, number, hex] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("four columns: {line}");
        };
        let fields = files.entry(file.to_owned()).or_default();
        let rows = fields.entry(field.to_owned()).or_default();
        assert_eq!(rows.len().to_string(), number);
        rows.push(from_hex(hex));
    }
    files
}

#[test]
fn samples_match_numpy_and_safetensors() {
    let expected = expected();
    assert_eq!(expected.len(), 2);
    for (file, fields) in expected {
        let arrays = Arrays::open(data().join(&file)).expect("good files");
        assert_eq!(arrays.fields().len(), fields.len());
        for index in (0..arrays.len()).rev() {
            let read = sample(&arrays, index);
            for (field, bytes) in arrays.fields().iter().zip(read) {
                let rows = &fields[field.name()];
                assert_eq!(rows.len(), arrays.len());
                assert_eq!(bytes, rows[index], "{file} {} {index}", field.name());
            }
        }
    }
}

#[test]
fn fields_have_the_shape_of_a_row() {
    let arrays = Arrays::open(data().join("npy")).expect("good files");
    let fields = [
        Field::fixed("image", Dtype::U8, [2, 3]),
        Field::fixed("label", Dtype::I64, []),
        Field::fixed("mask", Dtype::F16, [1, 5]),
    ];
    assert_eq!(arrays.fields(), fields);
    assert_eq!(arrays.len(), 7);
    let source = arrays.origin(3);
    assert!(source.starts_with("row 3 of ") && source.ends_with("image.npy and 2 more"));
}

#[test]
fn selected_tensors_keep_their_order() {
    let expected = expected();
    let catalog = Catalog::open(data().join("npy")).expect("good files");
    let tensor = |name: &str| catalog.tensor(name).expect("it is there").clone();
    let chosen = [tensor("mask"), tensor("image"), tensor("mask")];
    let arrays = Arrays::of(&catalog, &chosen).expect("a good choice");
    let [mask, image, again] = &sample(&arrays, 4)[..] else {
        panic!("three fields");
    };
    assert_eq!(mask, &expected["npy"]["mask"][4]);
    assert_eq!(image, &expected["npy"]["image"][4]);
    assert_eq!(mask, again);
}

#[test]
fn rows_of_a_tensor_are_samples_too() {
    let catalog = Catalog::open(data().join("npy/image.npy")).expect("a good file");
    let rows = catalog
        .tensor("image")
        .expect("there")
        .rows(2..5)
        .expect("rows");
    let arrays = Arrays::of(&catalog, &[rows]).expect("a good choice");
    assert_eq!(arrays.len(), 3);
    assert_eq!(sample(&arrays, 0)[0], expected()["npy"]["image"][2]);
}

#[test]
fn files_and_memory_can_be_combined() {
    let files = Arrays::open(data().join("one.safetensors")).expect("a good file");
    let more = Arrays::open(data().join("one.safetensors")).expect("a good file");
    let numbers = Arrays::from_memory(5, [(Field::fixed("n", Dtype::U8, []), [0_u8, 1, 2, 3, 4])]);
    let both = files
        .and(numbers.expect("good arrays"))
        .expect("five samples each");
    let all = both.and(more).expect("five samples each");
    let names: Vec<&str> = all.fields().iter().map(Field::name).collect();
    assert_eq!(names.len(), 5);
    let read = sample(&all, 3);
    assert_eq!(read[2], [3]);
    assert_eq!(read[..2], read[3..]);
}

/// No rows, and rows without elements.
#[test]
fn empty_arrays() {
    let scratch = Scratch::new();
    let npy = |shape: &str| {
        let text = format!("{{'descr': '<u2', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut file = b"\x93NUMPY\x01\0".to_vec();
        file.extend(u16::try_from(text.len()).expect("short").to_le_bytes());
        file.extend(text.bytes());
        file
    };
    let none = Arrays::open(scratch.file("none.npy", npy("(0, 3)"))).expect("a good file");
    assert!(none.is_empty());
    let hollow = Arrays::open(scratch.file("hollow.npy", npy("(4, 0)"))).expect("a good file");
    assert_eq!(hollow.len(), 4);
    assert_eq!(sample(&hollow, 3), [[0_u8; 0]]);
}

#[test]
fn reading_allocates_nothing() {
    let arrays = Arrays::open(data().join("npy")).expect("good files");
    let (mut image, mut label, mut mask) = ([0; 6], [0; 8], [0; 10]);
    let mut sample = SampleMut::new();
    for (field, room) in arrays
        .fields()
        .iter()
        .zip([&mut image[..], &mut label, &mut mask])
    {
        sample.push(field, room);
    }
    let (read, times) = allocations(|| (0..7).try_for_each(|at| arrays.read(at, &mut sample)));
    read.expect("good samples");
    assert_eq!(times, 0);
}

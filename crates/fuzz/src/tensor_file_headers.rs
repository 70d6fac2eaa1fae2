//! Headers of tensor files, through catalogs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pinlane_load::{Arrays, Catalog, Dataset, Dtype, LoadError, PlanOptions, SampleMut};

use crate::load_plan::check_plan;
use crate::reference_parser::compare_with_reference;
use crate::scratch;

/// A safetensors file. The reference implementation has the same verdict, and every byte can be planned.
pub fn safetensors(data: &[u8]) {
    let path = scratch::file("safetensors/w.safetensors", data);
    let opened = Catalog::open(&path);
    compare_with_reference(data, &opened);
    if let Some(catalog) = checked(opened, &path) {
        // Small, so that small files have several allocations and pieces, too.
        let options = PlanOptions::default()
            .align_bytes(16)
            .allocation_bytes(100)
            .piece_bytes(64)
            .read_align_bytes(16);
        check_plan(&catalog, catalog.tensors(), &options, true);
    }
}

/// Shards beside the index: those of the tests of `crates/load`.
const SHARDS: [(&str, &[u8]); 2] = [
    (
        "index/model-00001-of-00002.safetensors",
        include_bytes!("../../load/tests/data/load/sharded/model-00001-of-00002.safetensors"),
    ),
    (
        "index/model-00002-of-00002.safetensors",
        include_bytes!("../../load/tests/data/load/sharded/model-00002-of-00002.safetensors"),
    ),
];

/// An index file. The catalog has exactly the tensors that it lists.
pub fn index(data: &[u8]) {
    thread_local! {
        static WRITTEN: [PathBuf; 2] = SHARDS.map(|(name, bytes)| scratch::file(name, bytes));
    }
    let [first, _] = WRITTEN.with(Clone::clone);
    let path = scratch::file("index/model.safetensors.index.json", data);
    let opened = Catalog::open(path.parent().expect("the folder"));
    let Some(catalog) = checked(opened, first.parent().expect("the folder")) else {
        return;
    };
    // It refuses numbers and depths that do not matter here.
    let Ok(index) = serde_json::from_slice::<serde_json::Value>(data) else {
        return;
    };
    let listed = index["weight_map"].as_object().expect("it was accepted");
    let listed: BTreeSet<&str> = listed.keys().map(String::as_str).collect();
    let tensors = catalog.tensors().iter();
    let found: BTreeSet<&str> = tensors.map(|tensor| tensor.name()).collect();
    assert_eq!(found, listed);
}

/// An npy file. Its array survives being written again, and its rows are those of the file.
pub fn npy(data: &[u8]) {
    let path = scratch::file("npy/w.npy", data);
    let Some(catalog) = checked(Catalog::open(&path), &path) else {
        return;
    };
    let [array] = catalog.tensors() else {
        panic!("an npy file has one array");
    };
    let bytes = &data[array.bytes().start as usize..array.bytes().end as usize];
    check_rows(&path, array.shape(), bytes);

    let again = scratch::file(
        "npy/again.npy",
        &npy_file(array.dtype(), array.shape(), bytes),
    );
    let again = Catalog::open(again).expect("a file as numpy writes it");
    let again = &again.tensors()[0];
    assert_eq!(
        (again.dtype(), again.shape()),
        (array.dtype(), array.shape())
    );
}

/// A file as numpy writes it.
fn npy_file(dtype: Dtype, shape: &[u64], data: &[u8]) -> Vec<u8> {
    let kind = match dtype {
        Dtype::Bool => "|b1",
        Dtype::U8 => "|u1",
        Dtype::I8 => "|i1",
        Dtype::I16 => "<i2",
        Dtype::U16 => "<u2",
        Dtype::F16 => "<f2",
        Dtype::I32 => "<i4",
        Dtype::U32 => "<u4",
        Dtype::F32 => "<f4",
        Dtype::C64 => "<c8",
        Dtype::F64 => "<f8",
        Dtype::I64 => "<i8",
        Dtype::U64 => "<u8",
        other => panic!("numpy has no {other}"),
    };
    let shape: String = shape.iter().map(|dim| format!("{dim}, ")).collect();
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}\n");
    let length = u16::try_from(header.len()).expect("64 dimensions at most");
    let mut file = b"\x93NUMPY\x01\0".to_vec();
    file.extend(length.to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

/// The rows of an array, read as samples, are its bytes.
fn check_rows(path: &Path, shape: &[u64], bytes: &[u8]) {
    let Ok(arrays) = Arrays::open(path) else {
        // A row may be too large if there is none.
        let is_empty = bytes.is_empty();
        assert!(
            shape.is_empty() || is_empty,
            "an array with rows is a dataset"
        );
        return;
    };
    assert_eq!(arrays.len() as u64, shape[0]);
    let row_bytes = bytes.len().checked_div(arrays.len()).unwrap_or(0);
    // Empty rows may be without number.
    let last = arrays.len().saturating_sub(1);
    for index in (0..arrays.len().min(8)).chain((last > 8).then_some(last)) {
        let mut row = vec![0xee; row_bytes];
        let mut sample = SampleMut::new();
        sample.push(&arrays.fields()[0], &mut row);
        arrays.read(index, &mut sample).expect("a row of the file");
        assert_eq!(row, bytes[index * row_bytes..][..row_bytes]);
    }
}

/// A catalog whose tensors lie in its files without holes; or nothing, after checking the error.
fn checked(opened: Result<Catalog, LoadError>, path: &Path) -> Option<Catalog> {
    let catalog = match opened {
        Ok(catalog) => catalog,
        Err(error) => {
            let file = error.file().expect("errors name the file");
            assert!(file.starts_with(path), "{error}");
            check_error(&error);
            return None;
        }
    };
    for tensor in catalog.tensors() {
        let file = &catalog.files()[tensor.file()];
        let bytes = tensor.bytes();
        assert!(file.data_start() <= bytes.start && bytes.end <= file.len_bytes());
        let bits = tensor.shape().iter().product::<u64>() * tensor.dtype().bits();
        assert_eq!(bits, tensor.len_bytes() * 8);
        assert_eq!(catalog.tensor(tensor.name()), Ok(tensor));
    }
    Some(catalog)
}

/// Checks that an error can be shown: on one screen, without control characters, with its file.
pub fn check_error(error: &LoadError) {
    let text = error.to_string();
    assert!(text.len() < 2000, "too long: {text}");
    assert!(!text.contains(char::is_control), "{text:?}");
    if let Some(file) = error.file() {
        assert!(text.contains(&file.display().to_string()), "{text}");
    }
}

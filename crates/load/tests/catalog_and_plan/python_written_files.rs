//! Files written by the real Python packages are read as those packages read them.

use std::collections::HashSet;
use std::fs;

use pinlane::load::{Catalog, Dtype, Format, LoadErrorKind, NpyError};

use super::expected::expected;
use super::support::{data, kind_and_tensor};

#[test]
fn tensors_are_where_the_packages_say() {
    let expected = expected();
    let files: HashSet<&String> = expected.iter().map(|line| &line.file).collect();
    assert!(files.len() > 20);
    for file in files {
        let path = data().join(file);
        let bytes = fs::read(&path).expect("the file");
        let catalog = Catalog::open(&path).expect("a good file");
        let lines = expected.iter().filter(|line| line.file == *file);
        assert_eq!(catalog.tensors().len(), lines.clone().count(), "{file}");
        for line in lines {
            let found = catalog.tensor(&line.tensor).expect("it is there");
            assert_eq!(found.dtype().name(), line.dtype, "{file} {}", line.tensor);
            assert_eq!(found.shape(), line.shape, "{file} {}", line.tensor);
            let range = found.bytes();
            let there = &bytes[range.start as usize..range.end as usize];
            assert_eq!(there, line.bytes, "{file} {}", line.tensor);
        }
    }
}

#[test]
fn fixtures_cover_every_dtype() {
    let seen: HashSet<String> = expected().into_iter().map(|line| line.dtype).collect();
    for dtype in Dtype::ALL {
        assert!(seen.contains(dtype.name()), "{dtype}");
        assert_eq!(Dtype::from_name(dtype.name()), Some(dtype));
    }
}

#[test]
fn metadata_is_read() {
    let catalog = Catalog::open(data().join("dtypes.safetensors")).expect("a good file");
    let [file] = catalog.files() else {
        panic!("one file");
    };
    assert_eq!(file.format(), Format::Safetensors);
    assert_eq!(file.metadata()["format"], "pt");
    assert_eq!(file.metadata()["note"], "quotes \" and ü");

    let nothing = Catalog::open(data().join("nothing.safetensors")).expect("a good file");
    assert!(nothing.tensors().is_empty());
    assert_eq!(nothing.files()[0].metadata()["only"], "this");
}

#[test]
fn an_index_opens_all_its_files() {
    let index = data().join("sharded/model.safetensors.index.json");
    let from_index = Catalog::open(index).expect("a good index");
    let from_folder = Catalog::open(data().join("sharded")).expect("a good folder");
    assert_eq!(from_index, from_folder);
    assert_eq!(from_index.tensors().len(), 3);
    assert_eq!(from_index.files().len(), 2);
    assert_eq!(from_index.index_metadata()["total_size"], "94");
    assert_eq!(from_index.index_metadata()["by"], "write.py");
    assert_eq!(
        from_index.tensor("lm_head.weight").expect("there").file(),
        1
    );
}

#[test]
fn unsupported_arrays_are_refused() {
    let text = |descr: &str| NpyError::UnsupportedDescr {
        descr: descr.to_owned(),
    };
    let big = NpyError::BigEndian {
        descr: ">f4".to_owned(),
    };
    let cases = [
        ("big_endian", big, Some("big_endian")),
        ("complex128", text("<c16"), Some("complex128")),
        ("datetime", text("<M8[D]"), Some("datetime")),
        ("fortran", NpyError::FortranOrder, Some("fortran")),
        ("objects", NpyError::PythonObjects, Some("objects")),
        ("structured", NpyError::Structured, Some("structured")),
        ("text", text("<U2"), Some("text")),
        ("field_names", NpyError::Structured, None),
    ];
    for (name, kind, tensor) in cases {
        let path = data().join(format!("refused/{name}.npy"));
        let error = Catalog::open(&path).expect_err(name);
        assert_eq!(error.file(), Some(path.as_path()));
        let expected = (LoadErrorKind::Npy(kind), tensor.map(str::to_owned));
        assert_eq!(kind_and_tensor(&error), expected, "{name}");
    }
}

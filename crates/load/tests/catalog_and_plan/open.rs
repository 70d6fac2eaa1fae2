//! Opening paths: folders, several files, index files, special files, files that change.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::process::Command;

use pinlane::load::{Catalog, Dtype, HeaderError, LoadErrorKind, NpyError, Selection};

use super::support::{Scratch, kind_and_tensor, written};
use pinlane_testing::must_return;

fn one(name: &str) -> Vec<u8> {
    written(&[(name, Dtype::U8, &[3])], 1)
}

/// Opens this index beside `a.safetensors` with tensor `a` and `b.safetensors` with `b`.
fn open_index(index: &str) -> Result<Catalog, (LoadErrorKind, Option<String>)> {
    let scratch = Scratch::new();
    scratch.file("a.safetensors", one("a"));
    scratch.file("b.safetensors", one("b"));
    let path = scratch.file("m.safetensors.index.json", index);
    Catalog::open(&path).map_err(|error| {
        assert_eq!(error.file(), Some(path.as_path()));
        kind_and_tensor(&error)
    })
}

#[test]
fn folders() {
    let scratch = Scratch::new();
    let error = Catalog::open(scratch.path()).expect_err("an empty folder");
    assert_eq!(error.kind(), &LoadErrorKind::EmptyFolder);
    scratch.file("b.safetensors", one("b"));
    scratch.file("a.SafeTensors", one("a"));
    scratch.file("c.txt", "text");
    scratch.file(".hidden.safetensors", "junk");
    let catalog = Catalog::open(scratch.path()).expect("a good folder");
    let names: Vec<&str> = catalog.tensors().iter().map(|t| t.name()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(catalog.tensors()[1].file(), 1);

    scratch.file("c.safetensors", one("b"));
    let error = Catalog::open(scratch.path()).expect_err("a name twice");
    let other = scratch.path().join("b.safetensors");
    let found = kind_and_tensor(&error);
    assert_eq!(
        found,
        (
            LoadErrorKind::DuplicateTensor { other },
            Some("b".to_owned())
        )
    );
    assert_eq!(
        error.file(),
        Some(scratch.path().join("c.safetensors").as_path())
    );

    scratch.file(
        "1.safetensors.index.json",
        "{\"weight_map\":{\"b\":\"c.safetensors\"}}",
    );
    let catalog = Catalog::open(scratch.path()).expect("the index says which");
    assert_eq!(catalog.tensors().len(), 1);
    scratch.file("2.safetensors.index.json", "{}");
    let error = Catalog::open(scratch.path()).expect_err("two of them");
    assert!(
        matches!(error.kind(), LoadErrorKind::MultipleIndexes { .. }),
        "{error}"
    );
}

#[test]
fn special_files() {
    let scratch = Scratch::new();
    let missing = scratch.path().join("missing.safetensors");
    let error = Catalog::open(&missing).expect_err("not there");
    let kind = std::io::ErrorKind::NotFound;
    assert!(
        matches!(error.kind(), LoadErrorKind::Io { kind: k, .. } if *k == kind),
        "{error}"
    );
    assert_eq!(error.file(), Some(missing.as_path()));
    let error = Catalog::open("/dev/null").expect_err("a device");
    assert_eq!(error.kind(), &LoadErrorKind::NotAFile);
    let pipe = scratch.path().join("pipe.npy");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    let error = must_return(move || Catalog::open(pipe)).expect_err("a pipe");
    assert_eq!(error.kind(), &LoadErrorKind::NotAFile);
    let name = std::ffi::OsString::from_vec(b"\xff.npy".to_vec());
    let path = scratch.path().join(name);
    let dict = "{'descr':'|u1','fortran_order':False,'shape':()}";
    let mut file = b"\x93NUMPY\x01\0".to_vec();
    file.extend((dict.len() as u16).to_le_bytes());
    file.extend(dict.as_bytes());
    file.push(1);
    fs::write(&path, file).expect("a file with an odd name");
    let error = Catalog::open(path).expect_err("no name");
    assert_eq!(error.kind(), &LoadErrorKind::Npy(NpyError::NameNotUtf8));
}

#[test]
fn an_index_decides_which_tensors_are_there() {
    let good = open_index("{\"weight_map\":{\"b\":\"b.safetensors\",\"a\":\"./a.safetensors\"}}");
    assert_eq!(good.expect("good").tensors().len(), 2);
    let scratch = Scratch::new();
    let two = written(&[("x", Dtype::U8, &[1]), ("y", Dtype::U8, &[2])], 1);
    scratch.file("one.safetensors", &two);
    scratch.file("two.safetensors", &two);
    let index = "{\"weight_map\":{\"x\":\"two.safetensors\",\"y\":\"one.safetensors\"}}";
    let path = scratch.file("model.json", index);
    let catalog = Catalog::open(path).expect("a good index");
    let file_of = |name| &catalog.files()[catalog.tensor(name).expect("there").file()];
    assert!(file_of("x").path().ends_with("two.safetensors"));
    assert!(file_of("y").path().ends_with("one.safetensors"));
    assert_eq!(file_of("x").unlisted(), 1);
    assert_eq!(catalog.tensors().len(), 2);
}

#[test]
fn a_file_is_opened_once_however_its_path_is_spelled() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path().join("sub")).expect("a folder");
    let two = written(&[("x", Dtype::U8, &[1]), ("y", Dtype::U8, &[2])], 1);
    scratch.file("sub/w.safetensors", two);
    let index = "{\"weight_map\":{\"x\":\"./sub//w.safetensors\",\"y\":\"sub/./w.safetensors\"}}";
    let catalog = Catalog::open(scratch.file("model.json", index)).expect("a good index");
    assert_eq!((catalog.files().len(), catalog.tensors().len()), (1, 2));
}

#[test]
fn invalid_indexes() {
    let tensor = |name: &str| Some(name.to_owned());
    let missing = |field| {
        (
            LoadErrorKind::Header(HeaderError::MissingField { field }),
            None,
        )
    };
    assert_eq!(open_index("{}").expect_err("empty"), missing("weight_map"));
    assert_eq!(
        open_index("[]").expect_err("a list"),
        (LoadErrorKind::Header(HeaderError::NotAnObject), None)
    );
    for index in ["{\"weight_map\":[]}", "{\"weight_map\":{},\"metadata\":3}"] {
        let (kind, _) = open_index(index).expect_err(index);
        assert!(
            matches!(
                kind,
                LoadErrorKind::Header(HeaderError::InvalidField { .. })
            ),
            "{kind}"
        );
    }
    let (kind, name) = open_index("{\"weight_map\":{\"a\":3}}").expect_err("a number");
    assert!(
        matches!(
            kind,
            LoadErrorKind::Header(HeaderError::InvalidField {
                field: "weight_map",
                ..
            })
        ),
        "{kind}"
    );
    assert_eq!(name, tensor("a"));
    for index in [
        "{\"weight_map\":{\"a\":\"a.safetensors\",\"a\":\"b.safetensors\"}}",
        "{\"weight_map\":{},\"metadata\":{\"a\":1,\"a\":2}}",
        "{\"weight_map\":{},\"weight_map\":{}}",
    ] {
        let (kind, _) = open_index(index).expect_err(index);
        assert!(
            matches!(
                kind,
                LoadErrorKind::Header(HeaderError::DuplicateKey { .. })
            ),
            "{kind}"
        );
    }
    let target = "none.safetensors".to_owned();
    let found = open_index("{\"weight_map\":{\"a\":\"none.safetensors\"}}").expect_err("no file");
    assert_eq!(
        found,
        (LoadErrorKind::IndexedFileMissing { target }, tensor("a"))
    );
    let target = "a.safetensors".to_owned();
    let found = open_index("{\"weight_map\":{\"a\":\"a.safetensors\",\"b\":\"a.safetensors\"}}");
    let expected = (LoadErrorKind::IndexedTensorMissing { target }, tensor("b"));
    assert_eq!(found.expect_err("no tensor"), expected);
}

#[test]
fn an_index_must_stay_inside_its_folder() {
    for target in [
        "../a",
        "/etc/passwd",
        "x/../../a",
        "x/../a",
        "..",
        ".",
        "",
        "/",
        "a\\u0000b",
        "a\\n",
    ] {
        let index = format!("{{\"weight_map\":{{\"a\":\"{target}\"}}}}");
        let (kind, tensor) = open_index(&index).expect_err(target);
        assert!(
            matches!(kind, LoadErrorKind::OutsideFolder { .. }),
            "{target}: {kind}"
        );
        assert_eq!(tensor.as_deref(), Some("a"));
    }
}

#[test]
fn links_are_followed() {
    let (blobs, snapshot) = (Scratch::new(), Scratch::new());
    let blob = blobs.file("0123abcd", one("a"));
    symlink(&blob, snapshot.path().join("model.safetensors")).expect("a link");
    let index = "{\"weight_map\":{\"a\":\"model.safetensors\"}}";
    let path = snapshot.file("model.safetensors.index.json", index);
    assert_eq!(
        Catalog::open(path).expect("a good index").tensors().len(),
        1
    );
    assert!(Catalog::open(blob).is_ok());
}

#[test]
fn changed_files_are_detected() {
    let scratch = Scratch::new();
    let path = scratch.file("w.safetensors", one("a"));
    let catalog = Catalog::open(&path).expect("a good file");
    let info = &catalog.files()[0];
    let open = info.open().expect("unchanged");
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .and_then(|file| file.set_len(info.len_bytes() - 1))
        .expect("made shorter");
    assert_eq!(
        info.check(&open).expect_err("shorter").kind(),
        &LoadErrorKind::FileChanged
    );
    fs::rename(scratch.file("other", one("a")), &path).expect("replaced");
    let error = info.open().expect_err("another file");
    assert_eq!(
        (error.kind(), error.file()),
        (&LoadErrorKind::FileChanged, Some(path.as_path()))
    );
}

#[test]
fn selections() {
    let scratch = Scratch::new();
    let tensors: [(&str, Dtype, &[u64]); 4] = [
        ("h.0.w", Dtype::U8, &[1]),
        ("h.0.b", Dtype::U8, &[1]),
        ("h.1.w", Dtype::U8, &[1]),
        ("end", Dtype::U8, &[1]),
    ];
    let path = scratch.file("w.safetensors", written(&tensors, 1));
    let catalog = Catalog::open(path).expect("a good file");
    let names = |selection: &Selection| {
        let tensors = catalog.select(selection).expect("there");
        tensors
            .iter()
            .map(|t| t.name().to_owned())
            .collect::<Vec<_>>()
    };
    let glob = |pattern: &str| Selection::new().glob(pattern).expect("a good pattern");
    assert_eq!(names(&Selection::new()), ["h.0.w", "h.0.b", "h.1.w", "end"]);
    assert_eq!(
        names(&glob("h.?.w").name("end").name("h.0.w")),
        ["h.0.w", "h.1.w", "end"]
    );
    let error = catalog
        .select(&Selection::new().name("h.*.w"))
        .expect_err("a name");
    assert_eq!(
        (error.kind(), error.tensor()),
        (&LoadErrorKind::UnknownTensor, Some("h.*.w"))
    );
    let error = catalog
        .select(&glob("h*").glob("g*").expect("good"))
        .expect_err("nothing");
    let pattern = "g*".to_owned();
    assert_eq!(error.kind(), &LoadErrorKind::NoMatch { pattern });
}

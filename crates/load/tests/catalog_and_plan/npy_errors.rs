//! Every defect of an npy file has its own error.

use pinlane::load::{Catalog, Dtype, HeaderError, LoadErrorKind, NpyError};

use super::support::{Scratch, error_of};

/// An npy file with this version, dict and data.
fn npy(version: (u8, u8), dict: &str, data: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version.0, version.1]);
    match version.0 {
        1 => file.extend((dict.len() as u16).to_le_bytes()),
        _ => file.extend((dict.len() as u32).to_le_bytes()),
    }
    file.extend(dict.as_bytes());
    file.extend(data);
    file
}

const GOOD: &str = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }   \n";

#[track_caller]
fn refused(file: &[u8], kind: impl Into<LoadErrorKind>, tensor: Option<&str>) {
    let found = error_of("a.npy", file);
    assert_eq!(found, (kind.into(), tensor.map(str::to_owned)));
}

/// Checks that a file with this dict is refused at this byte of it.
#[track_caller]
fn refused_dict(dict: &str, at_bytes: usize) {
    let (kind, tensor) = error_of("a.npy", &npy((1, 0), dict, &[0; 8]));
    assert_eq!(tensor.as_deref(), Some("a"), "{dict}");
    assert!(
        matches!(kind, LoadErrorKind::Npy(NpyError::Header { at_bytes: at, .. }) if at == at_bytes),
        "{dict}: {kind}"
    );
}

#[test]
fn magic_and_version() {
    let good = npy((1, 0), GOOD, &[0; 8]);
    for file_bytes in 0..10 {
        let kind = HeaderError::TooShort {
            file_bytes,
            needed_bytes: 10,
        };
        refused(&good[..file_bytes as usize], kind, None);
    }
    for at in 0..6 {
        let mut file = good.clone();
        file[at] ^= 0x20;
        refused(&file, NpyError::Magic, None);
    }
    for (major, minor) in [(0, 0), (1, 1), (4, 0), (255, 255)] {
        let file = npy((major, minor), GOOD, &[]);
        refused(&file, NpyError::Version { major, minor }, None);
    }
    let short = HeaderError::TooShort {
        file_bytes: 11,
        needed_bytes: 12,
    };
    refused(&npy((2, 0), GOOD, &[])[..11], short, None);
    let mut lie = npy((3, 0), GOOD, &[0; 8]);
    lie[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    let kind = HeaderError::TooLarge {
        header_bytes: u32::MAX.into(),
        limit_bytes: 1 << 20,
    };
    refused(&lie, kind, None);
    let past = HeaderError::PastEnd {
        header_bytes: GOOD.len() as u64,
        file_bytes: 30,
    };
    refused(&good[..30], past, None);
    let mut odd = npy((3, 0), GOOD, &[0; 8]);
    odd[15] = 0xff;
    refused(&odd, HeaderError::NotUtf8 { at_bytes: 3 }, None);
}

#[test]
fn data_lengths() {
    for data_bytes in [0, 7] {
        let kind = HeaderError::DataPastEnd { end: 8, data_bytes };
        let file = npy((1, 0), GOOD, &vec![0; data_bytes as usize]);
        refused(&file, kind, Some("a"));
    }
    for found_bytes in [9, 100] {
        let kind = HeaderError::SizeMismatch {
            dtype: Dtype::F32,
            shape: vec![2, 1],
            expected_bytes: 8,
            found_bytes,
        };
        refused(
            &npy((1, 0), GOOD, &vec![0; found_bytes as usize]),
            kind,
            Some("a"),
        );
    }
    let dict = GOOD.replace("(2, 1)", "(18446744073709551615, 2)");
    let kind = LoadErrorKind::SizeOverflow {
        dtype: Dtype::F32,
        shape: vec![u64::MAX, 2],
    };
    refused(&npy((1, 0), &dict, &[]), kind, Some("a"));
}

#[test]
fn dict_syntax() {
    refused_dict("", 0);
    refused_dict("  [1]", 2);
    refused_dict("{'descr': '<f4'", 15);
    refused_dict("{'descr' '<f4'}", 9);
    refused_dict("{'descr': '<f4}", 10);
    refused_dict("{'descr': <f4}", 10);
    refused_dict("{'de\\x73cr': '<f4'}", 1);
    refused_dict("{'other': 1}", 1);
    refused_dict("{'descr': '<f4' 'shape': ()}", 16);
    refused_dict("{'fortran_order': false}", 18);
    refused_dict("{'fortran_order': 0}", 18);
    refused_dict("{'shape': 3}", 10);
    refused_dict("{'shape': [3]}", 10);
    refused_dict("{'shape': (3)}", 12);
    refused_dict("{'shape': (-3,)}", 11);
    refused_dict("{'shape': (,)}", 11);
    refused_dict("{'shape': (1, 2 3)}", 16);
    refused_dict("{'shape': (18446744073709551616,)}", 11);
    refused_dict(&GOOD.replace('\n', "x"), GOOD.len() - 1);
    refused_dict("{'a\u{fc}': 1}", 1);
    for field in ["descr", "fortran_order", "shape"] {
        let entries = [
            ("descr", "'<f4'"),
            ("fortran_order", "False"),
            ("shape", "(2,)"),
        ];
        let rest = entries.iter().filter(|(key, _)| *key != field);
        let rest: String = rest
            .map(|(key, value)| format!("'{key}':{value},"))
            .collect();
        let file = npy((1, 0), &format!("{{{rest}}}"), &[0; 8]);
        refused(&file, HeaderError::MissingField { field }, Some("a"));
    }
    let key = "shape".to_owned();
    let twice = GOOD.replace(", }", ", 'shape': (2,)}");
    refused(
        &npy((1, 0), &twice, &[0; 8]),
        HeaderError::DuplicateKey { key },
        Some("a"),
    );
    let many = GOOD.replace("(2, 1)", &format!("({})", "1, ".repeat(65)));
    let kind = HeaderError::TooManyDims {
        dims: 65,
        limit: 64,
    };
    refused(&npy((1, 0), &many, &[0; 4]), kind, Some("a"));
    let nested = GOOD.replace("'<f4'", "('<f4', (2,))");
    refused(
        &npy((1, 0), &nested, &[0; 8]),
        NpyError::Structured,
        Some("a"),
    );
}

#[test]
fn element_types() {
    for descr in [
        "", "<", "f4", "=f4", "<f3", "|f4", "<f16", "<u1", "<b2", "<f4 ",
    ] {
        let file = npy((1, 0), &GOOD.replace("<f4", descr), &[0; 8]);
        let (kind, _) = error_of("a.npy", &file);
        // Byte order does not matter for one byte.
        if descr == "<u1" {
            assert!(matches!(
                kind,
                LoadErrorKind::Header(HeaderError::SizeMismatch {
                    dtype: Dtype::U8,
                    ..
                })
            ));
        } else {
            let descr = descr.to_owned();
            assert_eq!(
                kind,
                LoadErrorKind::Npy(NpyError::UnsupportedDescr { descr })
            );
        }
    }
}

#[test]
fn equivalent_spellings() {
    let dicts = [
        "{\"shape\":(2L,1L,),\"descr\":\"<f4\",\"fortran_order\":False}",
        "  { 'fortran_order' : False , 'shape' : ( 2 , 1 ) , 'descr' : '<f4' , }\n",
    ];
    let scratch = Scratch::new();
    for dict in dicts {
        for version in [(1, 0), (2, 0), (3, 0)] {
            let path = scratch.file("a.npy", npy(version, dict, &[0; 8]));
            let catalog = Catalog::open(path).expect("a good file");
            assert_eq!(catalog.tensor("a").expect("there").shape(), [2, 1]);
        }
    }
}

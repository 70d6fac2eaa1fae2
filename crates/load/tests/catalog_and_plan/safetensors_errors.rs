//! Every defect of a safetensors file has its own error, which names the file and, if it is about one,
//! the tensor.

use pinlane::load::{Dtype, HeaderError, LoadErrorKind};

use super::support::{error_of, safetensors};

/// Checks that a file with this header and eight bytes of data is refused with this error.
#[track_caller]
fn refused(header: &str, kind: impl Into<LoadErrorKind>, tensor: Option<&str>) {
    let found = error_of("w.safetensors", &safetensors(header, &[7; 8]));
    let expected = (kind.into(), tensor.map(str::to_owned));
    assert_eq!(found, expected, "{header}");
}

/// The same, for a header with one tensor `w`.
#[track_caller]
fn refused_entry(entry: &str, kind: impl Into<LoadErrorKind>) {
    refused(&format!("{{\"w\":{entry}}}"), kind, Some("w"));
}

fn entry(shape: &str, start: &str, end: &str) -> String {
    format!("{{\"dtype\":\"F32\",\"shape\":{shape},\"data_offsets\":[{start},{end}]}}")
}

#[track_caller]
fn refused_length(file: &[u8], kind: impl Into<LoadErrorKind>) {
    assert_eq!(error_of("w.safetensors", file), (kind.into(), None));
}

#[test]
fn header_lengths() {
    for file_bytes in 0..8 {
        let kind = HeaderError::TooShort {
            file_bytes,
            needed_bytes: 8,
        };
        refused_length(&vec![1; file_bytes as usize], kind);
    }
    refused_length(&[0; 8], HeaderError::Empty);
    for header_bytes in [100_000_001, 1 << 32, u64::MAX - 8, u64::MAX] {
        let kind = HeaderError::TooLarge {
            header_bytes,
            limit_bytes: 100_000_000,
        };
        refused_length(&header_bytes.to_le_bytes(), kind);
    }
    for header_bytes in [3, 100_000_000] {
        let mut file = u64::to_le_bytes(header_bytes).to_vec();
        file.extend(b"{}");
        let kind = HeaderError::PastEnd {
            header_bytes,
            file_bytes: 10,
        };
        refused_length(&file, kind);
    }
}

#[test]
fn header_text() {
    let mut file = safetensors("{\"w\":?}", &[]);
    file[13] = 0xff;
    refused_length(&file, HeaderError::NotUtf8 { at_bytes: 5 });
    for header in ["[]", "null", "\"{}\"", " 3 "] {
        refused(header, HeaderError::NotAnObject, None);
    }
    for header in ["{", "{\"a\":}", "{} {}", "{}\0", "nul", "{'a':1}"] {
        let (kind, _) = error_of("w.safetensors", &safetensors(header, &[]));
        assert!(
            matches!(kind, LoadErrorKind::Header(HeaderError::NotJson { .. })),
            "{header}: {kind}"
        );
    }
    let deep = format!("{{\"w\":{}", "[".repeat(100_000));
    let (kind, _) = error_of("w.safetensors", &safetensors(&deep, &[]));
    assert!(
        matches!(kind, LoadErrorKind::Header(HeaderError::NotJson { .. })),
        "{kind}"
    );
}

#[test]
fn duplicate_keys() {
    let key = |key: &str| HeaderError::DuplicateKey {
        key: key.to_owned(),
    };
    let (low, high) = (entry("[1]", "0", "4"), entry("[1]", "4", "8"));
    let whole = entry("[2]", "0", "8");
    refused(
        &format!("{{\"w\":{low},\"w\":{high}}}"),
        key("w"),
        Some("w"),
    );
    refused(
        &format!("{{\"w\":{low},\"\\u0077\":{whole}}}"),
        key("w"),
        Some("w"),
    );
    refused(
        "{\"__metadata__\":{},\"__metadata__\":{}}",
        key("__metadata__"),
        None,
    );
    refused("{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", key("a"), None);
    let twice = whole.replace("{\"dtype\"", "{\"shape\":[2],\"dtype\"");
    refused_entry(&twice, key("shape"));
}

#[test]
fn invalid_metadata() {
    for value in ["[]", "3", "\"a\"", "true"] {
        let header = format!("{{\"__metadata__\":{value}}}");
        refused(&header, HeaderError::InvalidMetadata { key: None }, None);
    }
    for value in ["1", "null", "{}", "[\"a\"]"] {
        let header = format!("{{\"__metadata__\":{{\"a\":\"b\",\"c\":{value}}}}}");
        let key = Some("c".to_owned());
        refused(&header, HeaderError::InvalidMetadata { key }, None);
    }
}

#[test]
fn invalid_entries() {
    for value in ["3", "null", "[]", "\"F32\""] {
        let kind = HeaderError::InvalidField {
            field: "the entry",
            reason: "not an object".to_owned(),
        };
        refused_entry(value, kind);
    }
    let whole = entry("[2]", "0", "8");
    for field in ["dtype", "shape", "data_offsets"] {
        refused_entry(
            &whole.replace(field, "other"),
            HeaderError::MissingField { field },
        );
    }
    let dtype = "F31".to_owned();
    refused_entry(
        &whole.replace("F32", "F31"),
        HeaderError::UnknownDtype { dtype },
    );
    let cases = [
        ("dtype", whole.replace("\"F32\"", "32")),
        ("shape", entry("[-1]", "0", "8")),
        ("shape", entry("[2.0]", "0", "8")),
        ("shape", entry("[18446744073709551616]", "0", "8")),
        ("shape", entry("2", "0", "8")),
        ("shape", entry("[[2]]", "0", "8")),
        ("data_offsets", entry("[2]", "-8", "8")),
        ("data_offsets", entry("[2]", "0", "1e1")),
        ("data_offsets", entry("[2]", "0,4", "8")),
        ("data_offsets", whole.replace("[0,8]", "[8]")),
        ("data_offsets", whole.replace("[0,8]", "\"0,8\"")),
    ];
    for (expected, entry) in cases {
        let header = format!("{{\"w\":{entry}}}");
        let (kind, tensor) = error_of("w.safetensors", &safetensors(&header, &[7; 8]));
        assert_eq!(tensor.as_deref(), Some("w"));
        assert!(
            matches!(kind, LoadErrorKind::Header(HeaderError::InvalidField { field, .. }) if field == expected),
            "{entry}: {kind}"
        );
    }
}

#[test]
fn sizes() {
    let dtype = Dtype::F32;
    let (max, half) = (u64::MAX, 1_u64 << 62);
    let cases: [&[u64]; 6] = [
        &[max],
        &[half],
        &[1 << 32, 1 << 32],
        &[max, max],
        &[0, max, 2],
        &[max, 2, 0],
    ];
    for shape in cases {
        let kind = LoadErrorKind::SizeOverflow {
            dtype,
            shape: shape.to_vec(),
        };
        refused_entry(&entry(&format!("{shape:?}"), "0", "8"), kind);
    }
    for (shape, expected_bytes) in [(vec![], 4), (vec![3], 12), (vec![0], 0), (vec![2, 2], 16)] {
        let kind = HeaderError::SizeMismatch {
            dtype,
            shape: shape.clone(),
            expected_bytes,
            found_bytes: 8,
        };
        refused_entry(&entry(&format!("{shape:?}"), "0", "8"), kind);
    }
    for (name, dtype, count) in [("F4", Dtype::F4, 15), ("F6_E2M3", Dtype::F6E2M3, 10)] {
        let shape = vec![count];
        let entry = entry(&format!("[{count}]"), "0", "8").replace("F32", name);
        refused_entry(&entry, LoadErrorKind::PartialByte { dtype, shape });
    }
    let many = format!("[{}]", vec!["1"; 65].join(","));
    let kind = HeaderError::TooManyDims {
        dims: 65,
        limit: 64,
    };
    refused_entry(&entry(&many, "0", "8"), kind);
}

#[test]
fn offsets() {
    refused_entry(
        &entry("[2]", "8", "0"),
        HeaderError::ReversedOffsets { start: 8, end: 0 },
    );
    for end in [9, u64::MAX] {
        let kind = HeaderError::DataPastEnd { end, data_bytes: 8 };
        refused_entry(&entry("[2]", "1", &end.to_string()), kind);
    }
    let two = |first: &str, second: &str| format!("{{\"a\":{first},\"b\":{second}}}");
    let overlap = HeaderError::Overlap {
        start: 2,
        other: "a".to_owned(),
        other_end: 4,
    };
    let (low, high) = (entry("[1]", "0", "4"), entry("[1]", "4", "8"));
    refused(&two(&low, &entry("[1]", "2", "6")), overlap, Some("b"));
    refused(
        &two(&high, &entry("[0]", "0", "0")),
        HeaderError::Hole { start: 0, end: 4 },
        Some("a"),
    );
    refused(
        &format!("{{\"a\":{low}}}"),
        HeaderError::Hole { start: 4, end: 8 },
        None,
    );
    refused("{}", HeaderError::Hole { start: 0, end: 8 }, None);
    let inside = HeaderError::Overlap {
        start: 4,
        other: "a".to_owned(),
        other_end: 8,
    };
    refused(
        &two(&entry("[2]", "0", "8"), &entry("[0]", "4", "4")),
        inside,
        Some("b"),
    );
}

#[test]
fn long_and_odd_names_give_short_messages() {
    let name = "n\\u0007".repeat(10_000);
    let (_, tensor) = error_of(
        "w.safetensors",
        &safetensors(&format!("{{\"{name}\":1}}"), &[]),
    );
    assert_eq!(tensor.map(|name| name.len()), Some(20_000));
    let header = format!("{{\"w\":{{\"dtype\":\"{name}\",\"shape\":[],\"data_offsets\":[0,0]}}}}");
    let (kind, _) = error_of("w.safetensors", &safetensors(&header, &[]));
    assert!(matches!(
        kind,
        LoadErrorKind::Header(HeaderError::UnknownDtype { .. })
    ));
}

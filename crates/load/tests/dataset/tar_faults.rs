//! Invalid archives: every kind of damage has its own error.

use pinlane::load::{Dataset, Dtype, Field, LoadError, LoadErrorKind, Tar, TarConfig, TarError};

use super::support::{Scratch, entry, header, put_sum, record, sample};

fn open(bytes: &[u8]) -> Result<Tar, LoadError> {
    let scratch = Scratch::new();
    let path = scratch.file("a.tar", bytes);
    let config = TarConfig::new().field("cls", Field::fixed("label", Dtype::U8, [1]));
    let opened = Tar::open([&path], config);
    if let Err(error) = &opened {
        assert_eq!(error.file(), Some(path.as_path()));
        let text = error.to_string();
        assert!(
            text.len() < 1000 && !text.contains(char::is_control),
            "{text:?}"
        );
    }
    opened
}

#[track_caller]
fn fault(bytes: &[u8]) -> TarError {
    match open(bytes).expect_err("a bad archive").kind() {
        LoadErrorKind::Tar(fault) => fault.clone(),
        other => panic!("{other}"),
    }
}

fn len(bytes: &[u8]) -> usize {
    open(bytes).expect("a good archive").len()
}

fn good() -> Vec<u8> {
    entry(b'0', b"a.cls", b"1")
}

#[test]
fn ends_of_archives() {
    let zeros = [0; 512];
    assert_eq!(len(&[]), 0);
    assert_eq!(len(&good()), 1);
    assert_eq!(len(&[&good()[..], &zeros].concat()), 1);
    assert_eq!(len(&[&good()[..], &zeros, &zeros].concat()), 1);
    assert_eq!(len(&[0; 10_240]), 0);
    // Anything after the end is ignored, as tar does.
    assert_eq!(len(&[&good()[..], &zeros, &zeros, b"junk"].concat()), 1);
}

#[test]
fn truncated_archives() {
    let two = [good(), entry(b'0', b"b.cls", b"2")].concat();
    let at = |at_bytes| TarError::Truncated { at_bytes };
    assert_eq!(fault(&two[..1024 + 511]), at(1024));
    assert_eq!(fault(&two[..1024 + 1]), at(1024));
    assert_eq!(fault(&two[..2047]), at(1024 + 512)); // the data is there, what fills it up is not
    let past = TarError::PastEnd {
        entry: "b.cls".to_owned(),
        bytes: 1,
        left_bytes: 0,
    };
    assert_eq!(fault(&two[..1024 + 512]), past);
    // A long name, and then nothing.
    assert_eq!(
        fault(&entry(b'L', b"././@LongLink", b"name.cls\0")),
        at(1024)
    );
    let ended = [entry(b'x', b"x", &record("path", "a.b")), vec![0; 1024]].concat();
    assert_eq!(fault(&ended), at(1024));
}

#[test]
fn damaged_headers() {
    let mut damaged = [good(), good()].concat();
    damaged[1024 + 3] ^= 1;
    assert_eq!(fault(&damaged), TarError::Checksum { at_bytes: 1024 });
    assert_eq!(fault(&[b'x'; 512]), TarError::Checksum { at_bytes: 0 });
    for size in [
        b"0000000008\0".as_slice(),
        b"-1",
        b"0x10",
        &[0xff; 12],
        &[0x81; 12],
    ] {
        assert_eq!(
            fault(&header(b'0', b"a.cls", size)),
            TarError::Size { at_bytes: 0 }
        );
    }
    // A binary size of more than 64 bits.
    let size = [&[0x80, 0, 0, 1][..], &[0; 8]].concat();
    assert_eq!(
        fault(&header(b'0', b"a.cls", &size)),
        TarError::Size { at_bytes: 0 }
    );
    // The largest of 64 bits.
    let size = [&[0x80, 0, 0, 0][..], &[0xff; 8]].concat();
    let past = fault(&header(b'0', b"a.cls", &size));
    assert!(matches!(
        past,
        TarError::PastEnd {
            bytes: u64::MAX,
            left_bytes: 0,
            ..
        }
    ));
}

/// Some old programs summed signed bytes.
#[test]
fn checksums_of_signed_bytes() {
    let mut archive = entry(b'0', b"\xfc.cls", b"1");
    let plain: u32 = {
        put_sum(&mut archive);
        u32::from_str_radix(std::str::from_utf8(&archive[148..154]).expect("digits"), 8)
            .expect("a sum")
    };
    archive[148..154].copy_from_slice(format!("{:06o}", plain - 256).as_bytes());
    assert_eq!(len(&archive), 1);
    archive[148..154].copy_from_slice(format!("{:06o}", plain - 255).as_bytes());
    assert_eq!(fault(&archive), TarError::Checksum { at_bytes: 0 });
}

#[test]
fn sizes_in_every_spelling() {
    for size in [
        &b"00000000001\0"[..],
        b"          1 ",
        b"1\0",
        b"000000000001",
        b" 1 \0",
    ] {
        let archive = [header(b'0', b"a.cls", size), vec![b'7'; 512]].concat();
        assert_eq!(sample(&open(&archive).expect("good"), 0), [[b'7']]);
    }
    let binary = [&[0x80][..], &[0; 10], &[1]].concat();
    let archive = [header(b'0', b"a.cls", &binary), vec![b'7'; 512]].concat();
    assert_eq!(len(&archive), 1);
    assert_eq!(len(&header(b'0', b"a.cls", b"")), 1); // blank is nothing
}

#[test]
fn compressed_archives() {
    let starts: [(&[u8], &str); 5] = [
        (b"\x1f\x8b\x08", "gzip"),
        (b"BZh9", "bzip2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"\x04\x22\x4d\x18", "lz4"),
    ];
    for (start, how) in starts {
        let mut bytes = start.to_vec();
        for len in [600, 100] {
            bytes.resize(len, b'x');
            assert_eq!(fault(&bytes), TarError::Compressed { how });
        }
    }
}

#[test]
fn pax_headers() {
    let with = |text: &[u8]| [entry(b'x', b"x", text), good()].concat();
    assert_eq!(len(&with(b"")), 1);
    assert_eq!(len(&with(&record("path", "b.cls"))), 1);
    assert_eq!(len(&with(&record("comment", "x\ny="))), 1); // a value with a line's end in it
    assert_eq!(
        sample(&open(&with(&record("size", "1"))).expect("good"), 0),
        [b"1"]
    );
    for text in [
        &b"14 path=b.cls"[..],
        b"13 path=b.cls\n",
        b"15 path=b.cls\n",
        b"999 path=b.cls\n",
        b"99999999999999999999 path=b\n",
        b"-1 path=b\n",
        b"0 path=b\n",
        b"2 \n",
        b" path=b\n",
        b"7 path\n",
        b"path=b\n",
        b"11 size=-1\n",
        b"8 size=\n",
        b"29 size=99999999999999999999\n",
        b"\xff\xff",
    ] {
        let text_shown = String::from_utf8_lossy(text);
        assert_eq!(
            fault(&with(text)),
            TarError::Pax { at_bytes: 0 },
            "{text_shown:?}"
        );
    }
    let past = fault(&with(&record("size", "999")));
    assert!(matches!(
        past,
        TarError::PastEnd {
            bytes: 999,
            left_bytes: 512,
            ..
        }
    ));
    let sparse = TarError::Sparse {
        entry: "a.cls".to_owned(),
    };
    assert_eq!(fault(&with(&record("GNU.sparse.major", "1"))), sparse);
}

#[test]
fn other_faults() {
    assert_eq!(
        fault(&[good(), good()].concat()),
        TarError::Duplicate {
            entry: "a.cls".to_owned()
        }
    );
    let sparse = entry(b'S', b"a.cls", b"1");
    assert_eq!(
        fault(&sparse),
        TarError::Sparse {
            entry: "a.cls".to_owned()
        }
    );
    let too_large = header(b'L', b"././@LongLink", b"00004000001\0");
    let expected = TarError::ExtensionTooLarge {
        at_bytes: 0,
        header_bytes: (1 << 20) + 1,
        limit_bytes: 1 << 20,
    };
    assert_eq!(fault(&too_large), expected);
    let error = Tar::open(["/nowhere/a.tar"], TarConfig::new()).expect_err("no fields");
    assert_eq!(error.kind(), &LoadErrorKind::NoFields);
    let config = || TarConfig::new().field("cls", Field::fixed("label", Dtype::U8, [1]));
    let error = Tar::open(["/nowhere/a.tar"], config()).expect_err("no file");
    assert!(matches!(
        error.kind(),
        LoadErrorKind::Io { action: "open", .. }
    ));
    // Opening a pipe would wait for a writer.
    let error = Tar::open(["/dev/null"], config()).expect_err("no plain file");
    assert_eq!(error.kind(), &LoadErrorKind::NotAFile);
}

/// And extension headers apply only to the next entry.
#[test]
fn entries_other_than_files_are_ignored() {
    let archive = [
        entry(b'g', b"global", &record("path", "x.cls")),
        header(b'5', b"folder/", b"00000000777\0"), // a size, but no data
        entry(b'L', b"././@LongLink", b"link.cls\0"),
        entry(b'K', b"././@LongLink", b"target.cls\0"),
        header(b'2', b"short.cls", b"0"),
        header(b'1', b"hard.cls", b"00000001000\0"),
        header(0, b"old-folder/", b"0"),
        entry(b'V', b"label.cls", b""),
        entry(b'D', b"dump.cls", b"list of names"),
        entry(b'Z', b"unknown.cls", b"1"),
        entry(b'L', b"././@LongLink", b"long.cls\0"),
        entry(b'7', b"cut.cls", b"1"),
        entry(0, b"b.cls", b"2"),
        entry(b'L', b"././@LongLink", b"long.cls\0"),
        entry(b'x', b"x", &record("path", "c.cls")),
        entry(b'0', b"cut.cls", b"3"),
    ];
    let tar = open(&archive.concat()).expect("a good archive");
    let keys: Vec<String> = (0..tar.len()).map(|at| tar.origin(at)).collect();
    let keys: Vec<&str> = keys
        .iter()
        .filter_map(|key| key.rsplit(' ').next())
        .collect();
    assert_eq!(keys, ["\"long\"", "\"b\"", "\"c\""]);
}

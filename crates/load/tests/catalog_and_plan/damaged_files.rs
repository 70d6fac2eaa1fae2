//! Damaged files never cause a panic, high memory use, or a wrong catalog.

use std::collections::HashSet;
use std::mem::{self, Discriminant};
use std::panic;
use std::path::PathBuf;
use std::{env, fs};

use pinlane::load::{Catalog, HeaderError, LoadErrorKind, NpyError};
use pinlane_fuzz::compare_with_reference;

use super::allocation_counter::peak_bytes;
use super::support::{Scratch, SplitMix64, data, kind_and_tensor};

/// Text to insert into headers.
const WORDS: [&str; 28] = [
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ",",
    ":",
    "\"",
    "'",
    "0",
    "-1",
    "1e9",
    "7",
    "null",
    "True",
    "\\u0000",
    "\\",
    "18446744073709551615",
    "9223372036854775808",
    "__metadata__",
    "dtype",
    "shape",
    "data_offsets",
    "F4",
    "weight_map",
    "../",
    "[1],",
];

/// Files to damage.
fn good_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in ["", "npy", "sharded"] {
        for entry in fs::read_dir(data().join(folder)).expect("the folder") {
            let path = entry.expect("an entry").path();
            let extension = path.extension().and_then(|end| end.to_str());
            if matches!(extension, Some("safetensors" | "npy" | "json")) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Bytes before the header text.
fn prefix_bytes(path: &str, file: &[u8]) -> usize {
    match path {
        "json" => 0,
        "npy" if file.get(6) == Some(&1) => 10,
        "npy" => 12,
        _ => 8,
    }
}

/// End of a safetensors header, or of the file.
fn header_end(kind: &str, file: &[u8]) -> usize {
    let length = file.first_chunk().filter(|_| kind == "safetensors");
    let length = length.map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes));
    usize::try_from(length.saturating_add(8)).map_or(file.len(), |end| end.min(file.len()))
}

/// Damages a file once.
fn damage(random: &mut SplitMix64, kind: &str, file: &mut Vec<u8>) {
    let start = prefix_bytes(kind, file).min(file.len());
    let end = header_end(kind, file).max(start);
    let any = |random: &mut SplitMix64, len: usize| random.below(len as u64 + 1) as usize;
    match random.below(8) {
        0 if !file.is_empty() => {
            let at = any(random, file.len() - 1);
            file[at] ^= 1 << random.below(8);
        }
        1 => file.truncate(any(random, file.len())),
        2 => file.extend((0..random.below(20)).map(|_| 0)),
        3 if file.len() > 8 => file[random.below(8) as usize] = random.next_u64() as u8,
        kind_of_edit => {
            let (a, b) = (any(random, end - start), any(random, end - start));
            let from = start + a.min(b);
            let to = (from + random.below(40) as usize).min(start + a.max(b));
            let new = match kind_of_edit {
                4 => Vec::new(),
                5 => file[from..to].repeat(2),
                6 => random.next_u64().to_string().into_bytes(),
                _ => random.pick(&WORDS).as_bytes().to_vec(),
            };
            let to = if kind_of_edit >= 6 {
                from + random.below(2) as usize
            } else {
                to
            };
            let to = to.min(end);
            let grown = new.len() as i64 - (to - from) as i64;
            file.splice(from..to, new);
            // Otherwise most edits would only break the header length.
            if random.below(4) != 0 {
                repair_length(kind, file, grown);
            }
        }
    }
}

fn repair_length(kind: &str, file: &mut [u8], grown: i64) {
    if let ("safetensors", Some(length)) = (kind, file.first_chunk_mut::<8>()) {
        *length = u64::from_le_bytes(*length)
            .wrapping_add_signed(grown)
            .to_le_bytes();
    }
    if kind == "npy" && file.get(6) == Some(&1) && file.len() > 10 {
        let length = u16::from_le_bytes([file[8], file[9]]).wrapping_add_signed(grown as i16);
        file[8..10].copy_from_slice(&length.to_le_bytes());
    }
}

/// Checks that the catalog matches its files.
fn check(catalog: &Catalog) {
    for tensor in catalog.tensors() {
        let file = &catalog.files()[tensor.file()];
        let bytes = tensor.bytes();
        assert!(file.data_start() <= bytes.start && bytes.end <= file.len_bytes());
        let bits = tensor.shape().iter().product::<u64>() * tensor.dtype().bits();
        assert_eq!(bits, tensor.len_bytes() * 8);
        assert_eq!(catalog.tensor(tensor.name()), Ok(tensor));
    }
    for pair in catalog.tensors().windows(2) {
        assert!(pair[0].file() != pair[1].file() || pair[0].bytes().end == pair[1].bytes().start);
    }
}

#[derive(Default)]
struct Seen {
    accepted: usize,
    kinds: HashSet<Kind>,
}

/// The variant of an error, without its fields.
#[derive(PartialEq, Eq, Hash)]
enum Kind {
    Header(Discriminant<HeaderError>),
    Npy(Discriminant<NpyError>),
    Other(Discriminant<LoadErrorKind>),
}

impl Kind {
    fn of(kind: &LoadErrorKind) -> Self {
        match kind {
            LoadErrorKind::Header(kind) => Self::Header(mem::discriminant(kind)),
            LoadErrorKind::Npy(kind) => Self::Npy(mem::discriminant(kind)),
            kind => Self::Other(mem::discriminant(kind)),
        }
    }
}

/// Damages a file according to the seed, and opens it.
fn run(seed: u64, good: &[(String, Vec<u8>)], scratch: &Scratch, seen: &mut Seen) {
    let mut random = SplitMix64::new(seed);
    let (kind, file) = random.pick(good);
    let mut file = file.clone();
    for _ in 0..=random.below(3) {
        damage(&mut random, kind, &mut file);
    }
    let path = scratch.file(&format!("damaged.{kind}"), &file);
    let (opened, peak) = peak_bytes(|| Catalog::open(&path));
    // An index opens other files, of a few hundred bytes each.
    assert!(
        peak <= 16 * file.len() + (16 << 10),
        "{peak} bytes for {}",
        file.len()
    );
    match &opened {
        Ok(catalog) => {
            check(catalog);
            seen.accepted += 1;
        }
        Err(error) => {
            assert!(error.file().is_some());
            kind_and_tensor(error);
            seen.kinds.insert(Kind::of(error.kind()));
        }
    }
    if kind == "safetensors" {
        compare_with_reference(&file, &opened);
    }
}

#[test]
fn damaged_files_are_harmless() {
    let scratch = Scratch::new();
    let good: Vec<(String, Vec<u8>)> = good_files()
        .into_iter()
        .map(|path| {
            let bytes = fs::read(&path).expect("the file");
            // The damaged index needs them beside it.
            let name = path.file_name().expect("a name").to_string_lossy();
            scratch.file(&name, &bytes);
            let kind = path.extension().expect("an extension").to_string_lossy();
            (kind.into_owned(), bytes)
        })
        .collect();
    let one: Option<u64> = env::var("SEED")
        .ok()
        .map(|seed| seed.parse().expect("a number"));
    let seeds = one.map_or(0..12_000, |seed| seed..seed + 1);
    let mut seen = Seen::default();
    for seed in seeds {
        let run = panic::AssertUnwindSafe(|| run(seed, &good, &scratch, &mut seen));
        if let Err(payload) = panic::catch_unwind(run) {
            eprintln!(
                "replay: SEED={seed} cargo test -p pinlane-load --test catalog_and_plan damaged"
            );
            panic::resume_unwind(payload);
        }
    }
    if one.is_none() {
        assert!(seen.accepted > 300, "{} accepted", seen.accepted);
        assert!(
            seen.kinds.len() > 20,
            "{} kinds of errors",
            seen.kinds.len()
        );
    }
}

/// Headers crafted to use as much memory as possible.
#[test]
fn large_headers_take_little_memory() {
    let many = |entry: &str| entry.repeat(200_000 / entry.len());
    let entry = "\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]";
    let unique: String = (0..4000)
        .map(|n| format!(",\"{n}\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}"))
        .collect();
    let metadata: String = (0..20_000).map(|n| format!(",\"{n}\":\"\"")).collect();
    let headers = [
        format!("{{{}\"a\":0}}", many("\"\":0,")),
        format!("{{\"w\":{{{}{entry}}}}}", many("\"\":0,")),
        format!(
            "{{{}\"a\":{{{entry}}}}}",
            many(&format!("\"a\":{{{entry}}},"))
        ),
        format!("{{\"w\":{{\"dtype\":\"U8\",\"shape\":[{}0]}}}}", many("0,")),
        format!(
            "{{\"w\":{{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[{}0]}}}}",
            many("0,")
        ),
        format!("{{\"w\":{{\"dtype\":\"{}\"}}}}", many("\\u0000")),
        format!("{{\"w\":{}1{}}}", "[".repeat(90_000), "]".repeat(90_000)),
        format!("{{{}}}", &unique[1..]),
        format!("{{\"__metadata__\":{{{}}}}}", &metadata[1..]),
    ];
    let scratch = Scratch::new();
    for header in headers {
        let file = super::support::safetensors(&header, &[]);
        let path = scratch.file("w.safetensors", &file);
        let (_, peak) = peak_bytes(|| Catalog::open(&path).map_err(|error| error.to_string()));
        assert!(
            peak < 16 * file.len(),
            "{peak} for {}: {:.60}",
            file.len(),
            header
        );
    }
}

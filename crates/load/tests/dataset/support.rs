//! Temporary folders, reading a sample into new memory, and archives built by hand.

use std::path::{Path, PathBuf};

use pinlane::load::{Dataset, Dtype, FieldShape, LoadError, LoadErrorKind, SampleError, SampleMut};

#[path = "../support/scratch.rs"]
mod scratch;

pub use scratch::Scratch;

/// Folder of files written by other programs.
pub fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dataset")
}

pub fn from_hex(text: &str) -> Vec<u8> {
    let pairs = (0..text.len()).step_by(2);
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hex");
    pairs.map(byte).collect()
}

/// Bytes that a field has room for.
fn room_bytes(dtype: Dtype, extent: &FieldShape) -> usize {
    let elements = match extent {
        FieldShape::Fixed(shape) => shape.iter().product(),
        FieldShape::Variable { at_most } => *at_most,
    };
    elements * usize::try_from(dtype.bits()).expect("small") / 8
}

/// Read a sample into new memory.
pub fn read(dataset: &dyn Dataset, index: usize) -> Result<Vec<Vec<u8>>, SampleError> {
    let fields = dataset.fields();
    let mut places: Vec<Vec<u8>> = fields
        .iter()
        .map(|field| vec![0xee; room_bytes(field.dtype(), field.shape())])
        .collect();
    let mut sample = SampleMut::new();
    for (place, field) in places.iter_mut().zip(fields) {
        sample.push(field, place);
    }
    dataset.read(index, &mut sample)?;
    let written: Vec<Option<usize>> = (0..fields.len()).map(|at| sample.written(at)).collect();
    for ((place, field), written) in places.iter_mut().zip(fields).zip(written) {
        match field.shape() {
            FieldShape::Fixed(_) => assert_eq!(written, Some(place.len())),
            FieldShape::Variable { .. } => place.truncate(written.expect("it is written")),
        }
    }
    Ok(places)
}

/// The fields of a valid sample.
#[track_caller]
pub fn sample(dataset: &dyn Dataset, index: usize) -> Vec<Vec<u8>> {
    read(dataset, index).expect("a good sample")
}

/// The error of an invalid sample.
#[track_caller]
pub fn sample_fault(dataset: &dyn Dataset, index: usize) -> LoadErrorKind {
    let error = read(dataset, index).expect_err("a bad sample");
    let cause = error.cause().downcast_ref::<LoadError>();
    cause.expect("an error of loading").kind().clone()
}

/// An entry of an archive: header, data and padding to a whole block.
pub fn entry(kind: u8, name: &[u8], data: &[u8]) -> Vec<u8> {
    let mut bytes = header(kind, name, format!("{:011o}\0", data.len()).as_bytes());
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// A header in the oldest format, with a valid checksum.
pub fn header(kind: u8, name: &[u8], size: &[u8]) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name);
    block[124..124 + size.len()].copy_from_slice(size);
    block[156] = kind;
    put_sum(&mut block);
    block
}

/// Write the checksum of a header into it.
pub fn put_sum(block: &mut [u8]) {
    block[148..156].fill(b' ');
    let sum: u32 = block[..512].iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

/// A line of a pax header: its length (including itself), the key and the value.
pub fn record(key: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {key}={value}\n");
    let length = |digits: usize| (digits + rest.len()).to_string();
    let length = (1..5)
        .map(length)
        .zip(1..)
        .find(|(text, digits)| text.len() == *digits);
    let (length, _) = length.expect("a short line");
    (length + &rest).into_bytes()
}

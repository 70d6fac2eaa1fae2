//! What these tests share: folders that go away, files made by hand, numbers from a seed.

pub use pinlane_testing::SplitMix64;
use std::path::{Path, PathBuf};

use pinlane::load::{Catalog, Dtype, LoadError, LoadErrorKind};

#[path = "../support/scratch.rs"]
mod scratch;

pub use scratch::Scratch;

/// A safetensors file with this header and data.
pub fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(data);
    file
}

/// A valid safetensors file with these tensors in order.
pub fn written(tensors: &[(&str, Dtype, &[u64])], seed: u64) -> Vec<u8> {
    let (mut entries, mut at) = (Vec::new(), 0);
    for (name, dtype, shape) in tensors {
        let end = at + shape.iter().product::<u64>() * dtype.bits() / 8;
        entries.push(format!(
            "{name:?}:{{\"dtype\":\"{dtype}\",\"shape\":{shape:?},\"data_offsets\":[{at},{end}]}}"
        ));
        at = end;
    }
    let mut random = SplitMix64::new(seed);
    let data: Vec<u8> = (0..at).map(|_| random.next_u64() as u8).collect();
    safetensors(&format!("{{{}}}", entries.join(",")), &data)
}

/// The error of a file with these bytes.
#[track_caller]
pub fn error_of(name: &str, bytes: &[u8]) -> (LoadErrorKind, Option<String>) {
    let scratch = Scratch::new();
    let path = scratch.file(name, bytes);
    let error = Catalog::open(&path).expect_err("a file that is wrong");
    assert_eq!(error.file(), Some(path.as_path()), "{error}");
    kind_and_tensor(&error)
}

/// Kind and tensor of an error, after checking its message.
#[track_caller]
pub fn kind_and_tensor(error: &LoadError) -> (LoadErrorKind, Option<String>) {
    pinlane_fuzz::check_error(error);
    (error.kind().clone(), error.tensor().map(str::to_owned))
}

/// Folder of the files written by the Python packages.
pub fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/load")
}

//! Our verdict on a safetensors file, compared with the reference implementation's.

use std::panic;
use std::sync::Mutex;

use pinlane_core::internal::lock;
use pinlane_load::{Catalog, HeaderError, LoadError, LoadErrorKind};
use safetensors::SafeTensors;
use safetensors::tensor::Metadata;
use serde_json::Value;

/// Checks that the reference implementation agrees, except for what only it accepts.
pub fn compare_with_reference(file: &[u8], ours: &Result<Catalog, LoadError>) {
    match (ours, reference(file)) {
        (Ok(catalog), Some(theirs)) => {
            let data_start = catalog.files()[0].data_start() as usize;
            assert_eq!(catalog.tensors().len(), theirs.tensors().len());
            for tensor in catalog.tensors() {
                let info = theirs.info(tensor.name()).expect("they have it too");
                assert_eq!(info.dtype.to_string(), tensor.dtype().name());
                assert!(
                    info.shape
                        .iter()
                        .map(|dim| *dim as u64)
                        .eq(tensor.shape().iter().copied())
                );
                let (start, end) = info.data_offsets;
                let theirs = (start + data_start) as u64..(end + data_start) as u64;
                assert_eq!(theirs, tensor.bytes());
            }
            let metadata = theirs.metadata().clone().unwrap_or_default();
            assert_eq!(metadata.len(), catalog.files()[0].metadata().len());
        }
        // It parses the values of unknown fields, too: their depth, numbers and characters.
        (Ok(_), None) => assert!(
            header(file).is_none(),
            "the reference implementation refuses what we accept"
        ),
        (Err(error), Some(_)) => assert!(
            only_theirs(file, error),
            "the reference implementation accepts what we refuse: {error}"
        ),
        (Err(_), None) => {}
    }
}

/// Whether we refuse, and say, what only the reference implementation accepts.
fn only_theirs(file: &[u8], error: &LoadError) -> bool {
    let entry = || Some(header(file)?[error.tensor()?].take());
    match error.kind() {
        LoadErrorKind::SizeOverflow { .. }
        | LoadErrorKind::Header(HeaderError::DuplicateKey { .. })
        | LoadErrorKind::Header(HeaderError::TooManyDims { .. }) => true,
        // Its parser takes lists for objects, and objects for names.
        LoadErrorKind::Header(HeaderError::InvalidField { .. }) => {
            entry().is_some_and(|entry| entry.is_array() || entry["dtype"].is_object())
        }
        _ => false,
    }
}

/// The header of a file as plain JSON.
fn header(file: &[u8]) -> Option<Value> {
    let (length, rest) = file.split_first_chunk()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    serde_json::from_slice(rest.get(..length)?).ok()
}

/// What the reference implementation finds in a file, if it accepts it.
fn reference(file: &[u8]) -> Option<Metadata> {
    // It panics when sums overflow, and a fuzzer's hook would take that for ours. Two threads that changed the
    // hook at once could leave the silent one behind.
    static HOOK: Mutex<()> = Mutex::new(());
    let _one_at_a_time = lock(&HOOK);
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let found = panic::catch_unwind(|| SafeTensors::read_metadata(file).ok());
    panic::set_hook(hook);
    Some(found.ok()??.1)
}

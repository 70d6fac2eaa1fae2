//! Our verdict on a safetensors file, compared with the reference implementation's.

use std::panic;
use std::sync::Mutex;

use pinlane_core::internal::lock;
use pinlane_load::{Catalog, HeaderError, LoadError, LoadErrorKind};
use safetensors::SafeTensors;
use safetensors::tensor::Metadata;

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
        (Ok(_), None) => panic!("the reference implementation refuses what we accept"),
        (Err(error), Some(_)) => assert!(
            matches!(
                error.kind(),
                LoadErrorKind::Header(HeaderError::DuplicateKey { .. })
                    | LoadErrorKind::SizeOverflow { .. }
            ),
            "the reference implementation accepts what we refuse: {error}"
        ),
        (Err(_), None) => {}
    }
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

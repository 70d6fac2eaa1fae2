//! Our verdict on a file, compared with the reference implementation's.

use std::panic;

use pinlane::load::{Catalog, Dtype, HeaderError, LoadError, LoadErrorKind};
use safetensors::SafeTensors;

use super::support::{Scratch, SplitMix64, safetensors};

/// Checks that the reference implementation agrees, except for what only it accepts.
pub fn compare(file: &[u8], ours: &Result<Catalog, LoadError>) {
    // It panics when sums overflow.
    let theirs = panic::catch_unwind(|| SafeTensors::read_metadata(file).ok()).unwrap_or(None);
    match (ours, theirs) {
        (Ok(catalog), Some((_, theirs))) => {
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

/// Small headers with small numbers: many are nearly valid.
#[test]
fn small_random_headers() {
    let (scratch, mut accepted) = (Scratch::new(), 0);
    let dtypes = [Dtype::U8, Dtype::F4, Dtype::F16, Dtype::F6E2M3];
    for seed in 0..6000 {
        let mut random = SplitMix64::new(seed);
        let mut at = 0;
        let entries: Vec<String> = (0..random.below(4))
            .map(|n| {
                let dtype = random.pick(&dtypes);
                let shape: Vec<u64> = (0..random.below(3)).map(|_| random.below(5)).collect();
                let bytes = shape.iter().product::<u64>() * dtype.bits() / 8;
                let nudge = |random: &mut SplitMix64| u64::from(random.below(12) == 0);
                let (start, end) = (at + nudge(&mut random), at + bytes + nudge(&mut random));
                at += bytes;
                let fields = format!("\"shape\":{shape:?},\"data_offsets\":[{start},{end}]");
                format!("\"{n}\":{{\"dtype\":\"{dtype}\",{fields}}}")
            })
            .collect();
        let mut order = entries;
        if random.below(2) == 0 {
            order.reverse();
        }
        let data = vec![0; (at + u64::from(random.below(12) == 0)) as usize];
        let file = safetensors(&format!("{{{}}}", order.join(",")), &data);
        let opened = Catalog::open(scratch.file("w.safetensors", &file));
        accepted += usize::from(opened.is_ok());
        compare(&file, &opened);
    }
    assert!((1000..5000).contains(&accepted), "{accepted} accepted");
}

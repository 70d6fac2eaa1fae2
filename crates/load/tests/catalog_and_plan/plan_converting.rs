//! Converting plans, executed element by element on random catalogs.

use pinlane::load::{Catalog, Dtype, LoadErrorKind, Plan, PlanOptions, TensorInfo};

use super::plan::{random_catalog, random_options, random_selection};
use super::support::{Scratch, SplitMix64, written};

/// Convertible types, and their sizes.
const FLOATS: [(Dtype, u64); 4] = [
    (Dtype::F16, 2),
    (Dtype::Bf16, 2),
    (Dtype::F32, 4),
    (Dtype::F64, 8),
];

fn float_bytes(dtype: Dtype) -> Option<u64> {
    let float = FLOATS.iter().find(|(float, _)| *float == dtype);
    float.map(|(_, bytes)| *bytes)
}

/// Checks every element of every part: it is whole, and reaches its target once.
fn execute_converting(wanted: &[TensorInfo], to: Dtype, options: &PlanOptions) {
    let plan = Plan::converting(wanted, Some(to), options.clone()).expect("a possible plan");
    // Bytes of an element in the file and on the device; one byte if elements may be split.
    let sizes: Vec<_> = wanted
        .iter()
        .map(
            |tensor| match (float_bytes(tensor.dtype()), float_bytes(to)) {
                (Some(from), Some(bytes)) if tensor.dtype() != to => (from, bytes),
                _ => (1, 1),
            },
        )
        .collect();
    let places = plan.placements();
    let mut seen: Vec<Vec<bool>> = wanted
        .iter()
        .zip(&sizes)
        .map(|(tensor, (from, _))| vec![false; (tensor.len_bytes() / from) as usize])
        .collect();
    let mut read = Vec::new();
    for piece in plan.pieces() {
        read.push((piece.file, piece.bytes.start, piece.bytes.end));
        let align = options.read_align_bytes;
        let rounded = piece.bytes.end.next_multiple_of(align) - piece.bytes.start / align * align;
        assert!(piece.len_bytes() > 0 && rounded <= options.piece_bytes);
        assert!(!piece.parts.is_empty());
        for part in &piece.parts {
            let (tensor, place) = (&wanted[part.tensor], places[part.tensor]);
            let (from_bytes, to_bytes) = sizes[part.tensor];
            let converts = float_bytes(tensor.dtype()).is_some() && tensor.dtype() != to;
            assert_eq!(part.converts, converts);
            let start = piece.bytes.start + part.copy.from_bytes - tensor.bytes().start;
            let (first, split) = (start / from_bytes, start % from_bytes);
            let (count, rest) = (
                part.copy.len_bytes / from_bytes,
                part.copy.len_bytes % from_bytes,
            );
            assert_eq!((split, rest), (0, 0), "an element is split");
            assert_eq!(part.copy.allocation, place.allocation);
            assert_eq!(part.copy.to_bytes, place.offset_bytes + first * to_bytes);
            assert_eq!(part.copy.to_len_bytes, count * to_bytes);
            for element in first..first + count {
                let seen = &mut seen[part.tensor][element as usize];
                assert!(!std::mem::replace(seen, true), "an element comes twice");
            }
        }
        assert_eq!(piece.converts(), piece.parts.iter().any(|p| p.converts));
    }
    assert!(seen.iter().flatten().all(|seen| *seen), "one is missing");
    read.sort_unstable();
    for pair in read.windows(2) {
        let next_to_each_other = pair[0].0 < pair[1].0 || pair[0].2 <= pair[1].1;
        assert!(next_to_each_other, "no byte twice: {pair:?}");
    }
    check_placements(&plan, &sizes, wanted);
}

/// Checks that placements have the right size, lie inside their allocations, and do not overlap.
fn check_placements(plan: &Plan, sizes: &[(u64, u64)], wanted: &[TensorInfo]) {
    let mut taken = Vec::new();
    for ((tensor, (from, to)), place) in wanted.iter().zip(sizes).zip(plan.placements()) {
        assert_eq!(place.len_bytes, tensor.len_bytes() / from * to);
        if place.len_bytes > 0 {
            let end = place.offset_bytes + place.len_bytes;
            assert!(end <= plan.allocations()[place.allocation]);
            taken.push((place.allocation, place.offset_bytes, end));
        }
    }
    taken.sort_unstable();
    for pair in taken.windows(2) {
        assert!(pair[0].0 < pair[1].0 || pair[0].2 <= pair[1].1, "{pair:?}");
    }
}

#[test]
fn converted_elements_are_never_split() {
    for seed in 0..1500 {
        let mut random = SplitMix64::new(seed);
        let scratch = Scratch::new();
        let catalog = random_catalog(&mut random, &scratch);
        let wanted = match seed % 4 {
            0 => catalog.tensors().to_vec(),
            _ => random_selection(&mut random, &catalog),
        };
        let (to, _) = *random.pick(&FLOATS);
        let mut options = random_options(&mut random);
        // An element may start anywhere.
        options.piece_bytes = options
            .piece_bytes
            .max((options.read_align_bytes + 7).next_multiple_of(options.read_align_bytes));
        execute_converting(&wanted, to, &options);
    }
}

#[test]
fn pieces_too_small_for_an_element() {
    let scratch = Scratch::new();
    let tensors: &[(&str, Dtype, &[u64])] = &[("w", Dtype::F64, &[9]), ("i", Dtype::I64, &[9])];
    let path = scratch.file("w.safetensors", written(tensors, 1));
    let catalog = Catalog::open(path).expect("a good file");
    let plan = |to, read_align_bytes, count| {
        let options = PlanOptions::default()
            .piece_bytes(read_align_bytes * count)
            .read_align_bytes(read_align_bytes);
        Plan::converting(catalog.tensors(), to, options)
    };
    for (read_align_bytes, count, fits) in [
        (1, 7, false),
        (1, 8, true),
        (2, 4, false),
        (2, 5, true),
        (8, 1, false),
        (8, 2, true),
        (4096, 1, false),
        (4096, 2, true),
    ] {
        match plan(Some(Dtype::F32), read_align_bytes, count) {
            Ok(plan) => {
                assert!(fits && plan.pieces().count() < 200);
            }
            Err(error) => {
                let field = "piece_bytes";
                let kind = error.kind();
                assert!(
                    !fits
                        && matches!(kind, LoadErrorKind::InvalidConfig { field: f, .. } if *f == field)
                );
            }
        }
        // Anything that may be split fits.
        assert!(plan(Some(Dtype::F64), read_align_bytes, count).is_ok());
        assert!(plan(None, read_align_bytes, count).is_ok());
    }
    let error = plan(Some(Dtype::I64), 8, 8).expect_err("not a float");
    assert_eq!(error.kind(), &LoadErrorKind::NotAFloat { to: Dtype::I64 });
}

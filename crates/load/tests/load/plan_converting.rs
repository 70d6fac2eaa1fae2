//! Plans that convert, element by element on random catalogs.

use pinlane::load::{Catalog, Dtype, LoadErrorKind, Plan, PlanOptions, TensorInfo};

use super::plan::{random_catalog, random_options, random_selection};
use super::support::{Random, Scratch, written};

/// A float of the conversions, and the bytes of one.
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

/// Looks at every element of every part: it is whole, and goes to its place, once.
fn carry_out_converting(wanted: &[TensorInfo], to: Dtype, options: &PlanOptions) {
    let plan = Plan::converting(wanted, Some(to), options.clone()).expect("a possible plan");
    // Bytes of an element in the file and on the device; a byte where elements may be torn.
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
    let mut end = (0, 0);
    for piece in plan.pieces() {
        assert!((piece.file, piece.bytes.start) >= end, "no byte twice");
        end = (piece.file, piece.bytes.end);
        let grain = options.read_align_bytes;
        let rounded = piece.bytes.end.next_multiple_of(grain) - piece.bytes.start / grain * grain;
        assert!(piece.len_bytes() > 0 && rounded <= options.piece_bytes);
        assert!(!piece.parts.is_empty());
        for part in &piece.parts {
            let (tensor, place) = (&wanted[part.tensor], places[part.tensor]);
            let (from_bytes, to_bytes) = sizes[part.tensor];
            let converts = float_bytes(tensor.dtype()).is_some() && tensor.dtype() != to;
            assert_eq!(part.converts, converts);
            let start = piece.bytes.start + part.copy.from_bytes - tensor.bytes().start;
            let (first, torn) = (start / from_bytes, start % from_bytes);
            let (count, rest) = (
                part.copy.len_bytes / from_bytes,
                part.copy.len_bytes % from_bytes,
            );
            assert_eq!((torn, rest), (0, 0), "an element is torn");
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
    check_places(&plan, &sizes, wanted);
}

/// Places are as large as what comes there, inside of their allocations, and apart from each other.
fn check_places(plan: &Plan, sizes: &[(u64, u64)], wanted: &[TensorInfo]) {
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
fn elements_that_are_converted_are_never_torn() {
    for seed in 0..1500 {
        let mut random = Random(seed);
        let scratch = Scratch::new();
        let catalog = random_catalog(&mut random, &scratch);
        let wanted = match seed % 4 {
            0 => catalog.tensors().to_vec(),
            _ => random_selection(&mut random, &catalog),
        };
        let (to, _) = *random.pick(&FLOATS);
        let mut options = random_options(&mut random);
        // An element may start anywhere in a grain.
        options.piece_bytes = options
            .piece_bytes
            .max((options.read_align_bytes + 7).next_multiple_of(options.read_align_bytes));
        carry_out_converting(&wanted, to, &options);
    }
}

#[test]
fn pieces_in_which_an_element_may_not_fit() {
    let scratch = Scratch::new();
    let tensors: &[(&str, Dtype, &[u64])] = &[("w", Dtype::F64, &[9]), ("i", Dtype::I64, &[9])];
    let path = scratch.file("w.safetensors", written(tensors, 1));
    let catalog = Catalog::open(path).expect("a good file");
    let plan = |to, read_align_bytes, grains| {
        let options = PlanOptions::default()
            .piece_bytes(read_align_bytes * grains)
            .read_align_bytes(read_align_bytes);
        Plan::converting(catalog.tensors(), to, options)
    };
    for (read_align_bytes, grains, fits) in [
        (1, 7, false),
        (1, 8, true),
        (2, 4, false),
        (2, 5, true),
        (8, 1, false),
        (8, 2, true),
        (4096, 1, false),
        (4096, 2, true),
    ] {
        match plan(Some(Dtype::F32), read_align_bytes, grains) {
            Ok(plan) => {
                assert!(fits && plan.pieces().count() < 200);
            }
            Err(error) => {
                let field = "piece_bytes";
                let fault = error.kind();
                assert!(
                    !fits
                        && matches!(fault, LoadErrorKind::InvalidConfig { field: f, .. } if *f == field)
                );
            }
        }
        // Whatever may be torn fits.
        assert!(plan(Some(Dtype::F64), read_align_bytes, grains).is_ok());
        assert!(plan(None, read_align_bytes, grains).is_ok());
    }
    let error = plan(Some(Dtype::I64), 8, 8).expect_err("not a float");
    assert_eq!(error.kind(), &LoadErrorKind::NotAFloat { to: Dtype::I64 });
}

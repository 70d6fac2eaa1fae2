//! Plans of loads, executed byte by byte.

use std::fs;

use pinlane_load::{Catalog, Plan, PlanOptions, TensorInfo};

/// Executes a plan for tensors of a catalog, and checks that every byte arrives where it belongs; with copies
/// that are `merged`, or part by part.
pub fn check_plan(catalog: &Catalog, wanted: &[TensorInfo], options: &PlanOptions, merged: bool) {
    let plan = Plan::new(wanted, options.clone()).expect("a possible plan");
    let files: Vec<Vec<u8>> = catalog
        .files()
        .iter()
        .map(|file| fs::read(file.path()).expect("the file"))
        .collect();
    let mut device: Vec<Vec<Option<u8>>> = plan
        .allocations()
        .iter()
        .map(|bytes| vec![None; *bytes as usize])
        .collect();
    let mut copied_bytes = vec![0; wanted.len()];
    let mut read = vec![Vec::new(); files.len()];
    let mut last = (0, 0);
    let mut wraps = 0;
    for piece in plan.pieces() {
        wraps += usize::from((piece.file, piece.bytes.start) < last);
        assert!(wraps <= options.local_rank.rank().min(1), "in order");
        last = (piece.file, piece.bytes.end);
        let align = options.read_align_bytes;
        let rounded = piece.bytes.end.next_multiple_of(align) - piece.bytes.start / align * align;
        assert!(piece.len_bytes() > 0 && rounded <= options.piece_bytes);
        read[piece.file].extend(piece.bytes.clone());
        let slot = &files[piece.file][piece.bytes.start as usize..piece.bytes.end as usize];
        for part in &piece.parts {
            copied_bytes[part.tensor] += part.copy.len_bytes;
        }
        let parts = piece.parts.iter().map(|part| part.copy).collect();
        for copy in if merged { piece.copies() } else { parts } {
            for byte in 0..copy.len_bytes {
                let to = &mut device[copy.allocation][(copy.to_bytes + byte) as usize];
                assert_eq!(*to, None, "written once");
                *to = Some(slot[(copy.from_bytes + byte) as usize]);
            }
        }
    }
    let mut needed = vec![Vec::new(); files.len()];
    for ((tensor, place), copied_bytes) in wanted.iter().zip(plan.placements()).zip(copied_bytes) {
        assert_eq!(
            (place.len_bytes, copied_bytes),
            (tensor.len_bytes(), tensor.len_bytes())
        );
        assert_eq!(place.offset_bytes % options.align_bytes, 0);
        needed[tensor.file()].extend(tensor.bytes());
        for (at, byte) in tensor.bytes().enumerate() {
            // Cleared, so that a second tensor in the same place would be noticed.
            let there = device[place.allocation][place.offset_bytes as usize + at].take();
            assert_eq!(there, Some(files[tensor.file()][byte as usize]));
        }
    }
    for bytes in &mut needed {
        bytes.sort_unstable();
        bytes.dedup();
    }
    read.iter_mut().for_each(|bytes| bytes.sort_unstable());
    assert_eq!(
        read, needed,
        "each byte that is needed is read, once, and no other"
    );
    assert!(
        device.iter().flatten().all(Option::is_none),
        "nothing else was written"
    );
    check_allocations(&plan, wanted, options);
}

/// Allocations are few: no two neighbours would fit into one.
fn check_allocations(plan: &Plan, wanted: &[TensorInfo], options: &PlanOptions) {
    let largest = wanted.iter().map(TensorInfo::len_bytes).max().unwrap_or(0);
    for bytes in plan.allocations() {
        assert!(*bytes > 0 && *bytes <= options.allocation_bytes.max(largest));
    }
    for pair in plan.allocations().windows(2) {
        let together = pair[0].next_multiple_of(options.align_bytes) + pair[1];
        assert!(together > options.allocation_bytes);
    }
}

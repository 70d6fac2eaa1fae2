//! Plans, executed byte by byte on random catalogs.

use std::fs;

use pinlane::load::{Catalog, Dtype, LoadErrorKind, Plan, PlanOptions, Shard, TensorInfo};
use pinlane_fuzz::check_plan;

use super::support::{Scratch, SplitMix64, written};

/// Files with random tensors in them.
pub fn random_catalog(random: &mut SplitMix64, scratch: &Scratch) -> Catalog {
    let files = 1 + random.below(3);
    let paths: Vec<_> = (0..files)
        .map(|file| {
            let names: Vec<String> = (0..random.below(8))
                .map(|n| format!("{file}.{n}"))
                .collect();
            let tensors: Vec<_> = names
                .iter()
                .map(|name| {
                    let dtype = *random.pick(&Dtype::ALL);
                    let row = 4 * random.below(12);
                    (name.as_str(), dtype, vec![random.below(20), row])
                })
                .collect();
            let tensors: Vec<_> = tensors.iter().map(|(n, d, s)| (*n, *d, &s[..])).collect();
            let seed = random.next_u64();
            scratch.file(&format!("{file}.safetensors"), written(&tensors, seed))
        })
        .collect();
    Catalog::open_all(paths).expect("good files")
}

/// Some tensors, in any order, whole or in rows, some of them twice.
pub fn random_selection(random: &mut SplitMix64, catalog: &Catalog) -> Vec<TensorInfo> {
    let tensors = catalog.tensors();
    if tensors.is_empty() {
        return Vec::new();
    }
    (0..random.below(12))
        .filter_map(|_| {
            let tensor = random.pick(tensors);
            let end = random.below(tensor.shape()[0] + 1);
            match random.below(3) {
                0 => tensor.rows(random.below(end + 1)..end).ok(),
                _ => Some(tensor.clone()),
            }
        })
        .collect()
}

pub fn random_options(random: &mut SplitMix64) -> PlanOptions {
    let read_align_bytes = 1 << random.below(7);
    PlanOptions::default()
        .align_bytes(1 << random.below(9))
        .allocation_bytes(1 + random.below(4000))
        .piece_bytes(read_align_bytes * (1 + random.below(16)))
        .read_align_bytes(read_align_bytes)
        .local_rank(random_rank(random))
}

/// Alone in half of the cases.
fn random_rank(random: &mut SplitMix64) -> Shard {
    let world = 1 + random.below(2) * random.below(9);
    Shard::new(random.below(world) as usize, world as usize).expect("below the world")
}

#[test]
fn every_byte_reaches_its_target() {
    let seeds = 1500;
    for seed in 0..seeds {
        let mut random = SplitMix64::new(seed);
        let scratch = Scratch::new();
        let catalog = random_catalog(&mut random, &scratch);
        let wanted = match seed % 4 {
            0 => catalog.tensors().to_vec(),
            _ => random_selection(&mut random, &catalog),
        };
        let options = random_options(&mut random);
        check_plan(&catalog, &wanted, &options, seed % 2 == 0);
    }
}

#[test]
fn neighbours_share_one_read_and_one_copy() {
    let scratch = Scratch::new();
    let names: Vec<String> = (0..64).map(|n| format!("h.{n:02}")).collect();
    let tensors: Vec<_> = names
        .iter()
        .map(|n| (n.as_str(), Dtype::F32, &[64_u64, 4][..]))
        .collect();
    let path = scratch.file("w.safetensors", written(&tensors, 3));
    let catalog = Catalog::open(path).expect("a good file");
    let plan = Plan::new(catalog.tensors(), PlanOptions::default()).expect("a plan");
    assert_eq!(plan.allocations(), [64 * 1024]);
    let pieces: Vec<_> = plan.pieces().collect();
    assert_eq!(pieces.len(), 1);
    assert_eq!(pieces[0].parts.len(), 64);
    assert_eq!(pieces[0].copies().len(), 1);
}

/// Each of four ranks begins at its quarter, to a piece, and goes around once.
#[test]
fn ranks_begin_at_different_places_and_wrap() {
    let scratch = Scratch::new();
    let tensors = [("a", Dtype::U8, &[300_u64][..]), ("b", Dtype::F32, &[4000])];
    let path = scratch.file("w.safetensors", written(&tensors, 3));
    let catalog = Catalog::open(path).expect("a good file");
    let start = catalog.tensors()[0].bytes().start;
    let options = PlanOptions::default().read_align_bytes(1).piece_bytes(1000);
    for (rank, first) in [(0, 0), (1, 3300), (2, 7300), (3, 11_300)] {
        let shard = Shard::new(rank, 4).expect("one of four");
        let options = options.clone().local_rank(shard);
        check_plan(&catalog, catalog.tensors(), &options, true);
        let plan = Plan::new(catalog.tensors(), options.clone()).expect("a plan");
        let pieces: Vec<_> = plan.pieces().map(|piece| piece.bytes).collect();
        assert_eq!(pieces[0].start - start, first, "rank {rank}");
        let last = pieces.last().expect("pieces").end - start;
        assert_eq!(last, if rank == 0 { 16_300 } else { first }, "rank {rank}");
        // A limited window begins with the nearest tensor: here the first, as `b` would come around to itself.
        let plan = Plan::new(catalog.tensors(), options.window_bytes(100)).expect("a plan");
        let firsts: Vec<_> = plan.pieces().map(|piece| piece.parts[0].tensor).collect();
        let begins_with = usize::from((1..=2).contains(&rank));
        assert_eq!(firsts[0], begins_with, "rank {rank}");
        assert!(firsts.chunk_by(|a, b| a == b).count() == 2, "{firsts:?}");
    }
}

#[test]
fn invalid_sizes() {
    let good = PlanOptions::default();
    let with = |field, value| {
        let mut options = good.clone();
        *match field {
            "align_bytes" => &mut options.align_bytes,
            "allocation_bytes" => &mut options.allocation_bytes,
            "read_align_bytes" => &mut options.read_align_bytes,
            _ => &mut options.piece_bytes,
        } = value;
        options
    };
    let cases = [
        ("align_bytes", 0),
        ("align_bytes", 24),
        ("allocation_bytes", 0),
        ("read_align_bytes", 0),
        ("read_align_bytes", 4095),
        ("piece_bytes", 0),
        ("piece_bytes", 4097),
    ];
    for (name, value) in cases {
        let error = Plan::new(&[], with(name, value)).expect_err("not possible");
        let kind = error.kind();
        assert!(
            matches!(kind, LoadErrorKind::InvalidConfig { field, .. } if *field == name),
            "{kind}"
        );
    }
}

#[test]
fn a_huge_file_takes_little_memory_to_plan() {
    // A sparse file of a tebibyte.
    let scratch = Scratch::new();
    let bytes = 1_u64 << 40;
    let header =
        format!("{{\"w\":{{\"dtype\":\"U8\",\"shape\":[{bytes}],\"data_offsets\":[0,{bytes}]}}}}");
    let file = super::support::safetensors(&header, &[]);
    let path = scratch.file("w.safetensors", &file);
    let open = fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("the file");
    if open.set_len(file.len() as u64 + bytes).is_err() {
        return; // The file system has no sparse files.
    }
    let (pieces, peak) = super::allocation_counter::peak_bytes(|| {
        let catalog = Catalog::open(&path).expect("a good file");
        let plan = Plan::new(catalog.tensors(), PlanOptions::default()).expect("a plan");
        plan.pieces().take(1000).count()
    });
    assert_eq!(pieces, 1000);
    assert!(peak < 64 << 10, "{peak} bytes");
}

#[test]
fn total_size_overflow() {
    let scratch = Scratch::new();
    let path = scratch.file("w.safetensors", written(&[("w", Dtype::U8, &[1])], 1));
    let catalog = Catalog::open(path).expect("a good file");
    let tensor = catalog.tensors()[0].clone();
    let options = PlanOptions::default().align_bytes(1 << 63);
    assert!(Plan::new(&vec![tensor.clone(); 1], options.clone()).is_ok());
    let error = Plan::new(&vec![tensor; 2], options).expect_err("two halves of all addresses");
    assert_eq!(error.kind(), &LoadErrorKind::TotalOverflow);
}

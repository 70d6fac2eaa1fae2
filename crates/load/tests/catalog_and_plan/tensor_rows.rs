//! Rows and shards.

use std::ops::Range;

use pinlane::load::{Catalog, Dtype, LoadErrorKind, TensorInfo};

use super::support::{Scratch, kind_and_tensor, written};

/// A tensor of a file.
fn tensor(dtype: Dtype, shape: &[u64]) -> TensorInfo {
    let scratch = Scratch::new();
    let path = scratch.file("w.safetensors", written(&[("w", dtype, shape)], 1));
    let catalog = Catalog::open(path).expect("a good file");
    catalog.tensor("w").expect("there").clone()
}

#[track_caller]
fn refused(tensor: &TensorInfo, rows: Range<u64>, kind: LoadErrorKind) {
    let error = tensor.rows(rows).expect_err("rows that cannot be");
    assert_eq!(kind_and_tensor(&error), (kind, Some("w".to_owned())));
}

#[test]
fn rows_have_the_right_bytes() {
    for dtype in Dtype::ALL {
        for shape in [&[6, 4][..], &[6, 2, 2], &[8, 1, 8], &[24]] {
            let whole = tensor(dtype, shape);
            let row_bits = shape[1..].iter().product::<u64>() * dtype.bits();
            for start in 0..=shape[0] {
                for end in start..=shape[0] {
                    let (from, to) = (start * row_bits, end * row_bits);
                    let found = whole.rows(start..end);
                    if from % 8 != 0 || to % 8 != 0 {
                        let kind = LoadErrorKind::RowsSplitByte {
                            start,
                            end,
                            dtype,
                            shape: shape.to_vec(),
                        };
                        assert_eq!(found.expect_err("split").kind(), &kind);
                        continue;
                    }
                    let found = found.expect("rows");
                    let base = whole.bytes().start;
                    assert_eq!(found.bytes(), base + from / 8..base + to / 8);
                    assert_eq!(found.shape()[0], end - start);
                    assert_eq!(found.shape()[1..], shape[1..]);
                    assert_eq!((found.name(), found.dtype()), ("w", dtype));
                }
            }
        }
    }
}

#[test]
fn rows_of_rows() {
    let whole = tensor(Dtype::I16, &[10, 3]);
    let once = whole.rows(4..8).expect("rows");
    let twice = once.rows(1..3).expect("rows");
    assert_eq!(twice, whole.rows(5..7).expect("rows"));
    assert!(once.rows(0..5).is_err());
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "that is the point")]
fn invalid_rows() {
    let out = |start, end| LoadErrorKind::RowsOutOfRange {
        start,
        end,
        rows: 4,
    };
    let whole = tensor(Dtype::F32, &[4, 2]);
    refused(&whole, 0..5, out(0, 5));
    refused(&whole, 5..5, out(5, 5));
    refused(&whole, 3..2, out(3, 2));
    refused(&whole, u64::MAX..u64::MAX, out(u64::MAX, u64::MAX));
    refused(&tensor(Dtype::F32, &[]), 0..0, LoadErrorKind::NoRows);
    let empty = tensor(Dtype::F32, &[3, 0]);
    assert_eq!(empty.rows(1..3).expect("rows").len_bytes(), 0);
}

#[test]
fn shards_cover_all_rows_once() {
    for rows in [0, 1, 2, 5, 7, 8, 64, 1000] {
        let whole = tensor(Dtype::U16, &[rows, 3]);
        for world in 1..=16 {
            let (mut at, mut sizes) = (whole.bytes().start, Vec::new());
            for rank in 0..world {
                let shard = whole.shard(rank, world).expect("a shard");
                assert_eq!(shard.bytes().start, at);
                at = shard.bytes().end;
                sizes.push(shard.shape()[0]);
            }
            assert_eq!(at, whole.bytes().end);
            let (low, high) = (sizes.iter().min(), sizes.iter().max());
            assert!(high.unwrap() - low.unwrap() <= 1, "{sizes:?}");
        }
    }
    let whole = tensor(Dtype::U16, &[4]);
    for (rank, world) in [(0, 0), (4, 4), (u64::MAX, 1)] {
        let error = whole.shard(rank, world).expect_err("no such rank");
        assert_eq!(error.kind(), &LoadErrorKind::InvalidRank { rank, world });
    }
    let last = whole.shard(u64::MAX - 1, u64::MAX).expect("the last");
    assert_eq!(last, whole.rows(3..4).expect("a row"));
    assert_eq!(whole.shard(0, u64::MAX).expect("empty").shape(), [0]);
    let scalar = tensor(Dtype::U16, &[]);
    assert_eq!(
        scalar.shard(0, 1).expect_err("no rows").kind(),
        &LoadErrorKind::NoRows
    );
}

//! Copies of rows with different pitches.

use crate::Outcome;
use crate::case::cases;
use crate::outcome::check_eq;
use crate::pattern::pattern;
use crate::rig::MemoryKind::{self, Device, Pageable, Pinned};
use crate::rig::Rig;

cases! {
    "rows/h2d-pinned" => |rig| shapes(rig, Pinned, Device, false),
    "rows/h2d-pinned-async" => |rig| shapes(rig, Pinned, Device, true),
    "rows/h2d-pageable" => |rig| shapes(rig, Pageable, Device, false),
    "rows/h2d-pageable-async" => |rig| shapes(rig, Pageable, Device, true),
    "rows/d2h-pinned" => |rig| shapes(rig, Device, Pinned, false),
    "rows/d2h-pinned-async" => |rig| shapes(rig, Device, Pinned, true),
    "rows/d2h-pageable" => |rig| shapes(rig, Device, Pageable, false),
    "rows/d2d" => |rig| shapes(rig, Device, Device, false),
    "rows/d2d-async" => |rig| shapes(rig, Device, Device, true),
    "rows/h2h-pinned" => |rig| shapes(rig, Pinned, Pinned, false),
}

/// Bytes of a row, rows, source pitch, target pitch.
const SHAPES: [(usize, usize, usize, usize); 7] = [
    (1, 1, 1, 1),
    (100, 1, 128, 100),
    (100, 10, 100, 100),
    (100, 10, 128, 512),
    (33, 57, 64, 33),
    (1, 200, 3, 7),
    (4096, 64, 4160, 8192),
];

fn shapes(rig: &Rig, from: MemoryKind, to: MemoryKind, in_stream: bool) -> Outcome {
    let stream = rig.stream()?;
    for (row_bytes, rows, source_pitch, target_pitch) in SHAPES {
        let data = pattern(50, rows * source_pitch);
        let mut expected = vec![0xa5; rows * target_pitch];
        let source = rig.memory(from, data.len())?;
        let target = rig.memory(to, expected.len())?;
        rig.write(source.all(), &data)?;
        rig.write(target.all(), &expected)?;
        let ends = [(target.all(), target_pitch), (source.all(), source_pitch)];
        rig.copy_rows(ends, row_bytes, rows, in_stream.then_some(stream))?;
        rig.stream_synchronize(stream)?;
        for row in 0..rows {
            expected[row * target_pitch..][..row_bytes]
                .copy_from_slice(&data[row * source_pitch..][..row_bytes]);
        }
        // The bytes between the rows must not change.
        let found = rig.read(target.all())?;
        let wrong = found.iter().zip(&expected).position(|(f, e)| f != e);
        check_eq!(
            wrong,
            None,
            "first wrong byte of {rows} rows of {row_bytes}, pitches {source_pitch} and {target_pitch}"
        );
    }
    Ok(())
}

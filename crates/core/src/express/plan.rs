//! Which chunks a copy is cut into.

use std::ops::Range;

/// The first chunk of a copy: large enough to be worth a copy of its own, small enough to be staged
/// in some ten microseconds, so that the link starts early.
const FIRST_CHUNK_BYTES: usize = 512 << 10;

/// The same for pieces: a kernel comes behind each chunk, and the next one waits for it.
const FIRST_CHUNK_OF_PIECES_BYTES: usize = 2 << 20;

/// A chunk is worked off in about this many slices, so that all lanes find something in it.
const SLICES: usize = 64;

/// Smaller slices cost more in hand-outs than they gain in balance, larger ones leave lanes idle at
/// the end.
const SLICE_BYTES: Range<usize> = 16 << 10..128 << 10;

/// Chunks start at multiples of this, so that no element is torn and vector copies stay aligned.
const GRAIN_BYTES: usize = 4096;

/// Ranges of a copy of `bytes`, in order and without holes: doubling up to `chunk_bytes`, then
/// halving towards the end, so that little is left to do when the last bytes arrive.
pub(crate) fn chunks(bytes: usize, chunk_bytes: usize, pieces: bool) -> Vec<Range<usize>> {
    debug_assert!(chunk_bytes >= GRAIN_BYTES && chunk_bytes.is_multiple_of(GRAIN_BYTES));
    let first = match pieces {
        true => FIRST_CHUNK_OF_PIECES_BYTES.min(chunk_bytes),
        false => FIRST_CHUNK_BYTES.min(chunk_bytes),
    };
    let (mut size, mut at, mut chunks) = (first, 0, Vec::new());
    while at < bytes {
        let left = bytes - at;
        let next = if left < 2 * size {
            (left / 2).next_multiple_of(GRAIN_BYTES).max(first)
        } else {
            size
        };
        let next = next.min(left).min(chunk_bytes);
        chunks.push(at..at + next);
        at += next;
        size = (2 * size).min(chunk_bytes);
    }
    chunks
}

/// Bytes of a slice of a chunk of `bytes`; the last slice may be shorter.
fn slice_bytes(bytes: usize) -> usize {
    (bytes / SLICES)
        .next_multiple_of(GRAIN_BYTES)
        .clamp(SLICE_BYTES.start, SLICE_BYTES.end)
}

/// Slice number `slice` of a chunk.
pub(crate) fn slice(chunk: &Range<usize>, slice: usize) -> Range<usize> {
    let bytes = slice_bytes(chunk.len());
    let start = chunk.start + slice * bytes;
    start..chunk.end.min(start + bytes)
}

/// Slices of a chunk of `bytes`.
pub(crate) fn slices(bytes: usize) -> usize {
    bytes.div_ceil(slice_bytes(bytes)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_everything_once_and_fit_the_ring() {
        let sizes = (0..2000)
            .map(|i| i * 37)
            .chain((0..400).map(|i| i * 333_337))
            .chain([1 << 30, (1 << 30) + 1, (64 << 20) - 1]);
        for bytes in sizes.step_by(if cfg!(miri) { 100 } else { 1 }) {
            for chunk_bytes in [64 << 10, 1 << 20, 8 << 20] {
                let chunks = chunks(bytes, chunk_bytes, bytes % 2 == 0);
                let mut at = 0;
                for chunk in &chunks {
                    assert_eq!(chunk.start, at);
                    assert!(!chunk.is_empty() && chunk.len() <= chunk_bytes);
                    assert!(chunk.start.is_multiple_of(GRAIN_BYTES));
                    at = chunk.end;
                }
                assert_eq!(at, bytes);
            }
        }
    }

    #[test]
    fn chunks_ramp_up_and_down() {
        let sizes: Vec<usize> = chunks(64 << 20, 8 << 20, false)
            .iter()
            .map(Range::len)
            .collect();
        assert_eq!(sizes[..5], [512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20]);
        let last = *sizes.last().unwrap();
        assert!(last <= 1 << 20, "ends with {last} bytes");
    }

    #[test]
    fn slices_are_many_but_not_tiny() {
        for bytes in [1, 4096, 512 << 10, 3 << 20, 8 << 20] {
            let (slice, count) = (slice_bytes(bytes), slices(bytes));
            assert!(slice * count >= bytes && slice * (count - 1) < bytes);
            assert!(count <= SLICES && slice.is_multiple_of(GRAIN_BYTES));
        }
    }
}

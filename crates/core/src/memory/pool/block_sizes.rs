//! Block sizes: eight steps from each power of two to the next.

/// The smallest block and the minimum alignment: a cache line.
const LINE_BYTES: usize = 64;

/// Steps from one power of two to the next. Each is at most an eighth of the size below it.
const STEPS: usize = 8;

/// The smallest block size that holds `bytes`, which is more than 0 and at most `isize::MAX`.
pub(super) const fn round_up(bytes: usize) -> usize {
    block_bytes(index(bytes))
}

/// Index of the smallest block size that holds `bytes`.
const fn index(bytes: usize) -> usize {
    let lines = bytes.div_ceil(LINE_BYTES);
    if lines <= STEPS {
        return lines - 1;
    }
    let octave = octave_of(lines - 1);
    let step = (lines - 1) >> octave; // 8 to 15
    octave * STEPS + step
}

/// Size in bytes of block size `index`.
const fn block_bytes(index: usize) -> usize {
    if index < STEPS {
        return (index + 1) * LINE_BYTES;
    }
    let (octave, step) = (index / STEPS - 1, index % STEPS + STEPS);
    ((step + 1) << octave) * LINE_BYTES
}

/// How often `lines`, at least 8, can be halved and stay at least 8.
const fn octave_of(lines: usize) -> usize {
    (lines.ilog2() - STEPS.ilog2()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_smallest_block_that_holds_it() {
        let mut bytes = 1;
        while bytes < isize::MAX as usize / 2 {
            let at = index(bytes);
            assert!(block_bytes(at) >= bytes, "{bytes}");
            assert!(at == 0 || block_bytes(at - 1) < bytes, "{bytes}");
            bytes += 1 + bytes / 97;
        }
        for at in 0..index(1 << 50) {
            assert_eq!(index(block_bytes(at)), at, "exactly full");
            assert_eq!(index(block_bytes(at) + 1), at + 1, "a byte more");
        }
        assert_eq!(block_bytes(0), LINE_BYTES);
        assert_eq!(round_up(isize::MAX as usize), 1 << 63);
    }

    #[test]
    fn at_most_an_eighth_is_wasted_or_less_than_a_line() {
        let mut bytes = LINE_BYTES;
        while bytes < 1 << 40 {
            let block = block_bytes(index(bytes));
            let waste = block - bytes;
            assert!(
                waste <= block / 8 || waste < LINE_BYTES,
                "{bytes} in {block}"
            );
            bytes += 1 + bytes / 1009;
        }
    }

    /// An element's size is a multiple of its alignment. Up to eight times the alignment, each multiple is
    /// a block size; beyond that, every step is at least the alignment.
    #[test]
    fn blocks_of_aligned_elements_are_multiples_of_their_alignment() {
        for align in (6..=12).map(|power| 1 << power) {
            for bytes in (1..500).map(|multiple| multiple * align) {
                assert_eq!(block_bytes(index(bytes)) % align, 0, "{bytes}");
            }
        }
    }
}

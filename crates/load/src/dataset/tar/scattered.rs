//! Files that lie apart from the others of their sample.

use super::index::Index;

/// Fields that a sample lacks and that lie elsewhere in the archive under the same key, in the order of
/// samples and fields. Takes no time where no sample lacks anything.
pub(super) fn find(index: &Index) -> Vec<(usize, usize)> {
    let lacks = |sample: usize| index.places(sample).iter().any(Option::is_none);
    if !(0..index.len()).any(lacks) {
        return Vec::new();
    }
    let mut samples: Vec<usize> = (0..index.len()).collect();
    samples.sort_by_key(|sample| index.key(*sample));
    let mut scattered = Vec::new();
    for same in samples.chunk_by(|one, other| index.key(*one) == index.key(*other)) {
        if same.len() == 1 {
            continue;
        }
        let fields = index.places(same[0]).len();
        for field in 0..fields {
            let has = |sample: &&usize| index.places(**sample)[field].is_some();
            if same.iter().any(|sample| has(&sample)) {
                let without = same.iter().filter(|sample| !has(sample));
                scattered.extend(without.map(|sample| (*sample, field)));
            }
        }
    }
    scattered.sort_unstable();
    scattered
}

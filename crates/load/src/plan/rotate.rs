//! Where a plan begins: ranks that load the same files begin at different places.

use super::PlanOptions;
use super::pieces::TensorSource;

/// Reorders the sources, which are sorted by file and offset, so that they begin at the place of the rank.
pub(super) fn begin_at(mut sources: Vec<TensorSource>, options: &PlanOptions) -> Vec<TensorSource> {
    let Some((first, inside)) = place_of_rank(&sources, options) else {
        return sources;
    };
    let source = &sources[first];
    if options.window_bytes < u64::MAX {
        let nearest = first + usize::from(inside > source.len_bytes() / 2);
        let nearest = nearest % sources.len();
        sources.rotate_left(nearest);
        return sources;
    }
    // Whole pieces, of whole elements.
    let element_bytes = source.element_bytes.0;
    let inside = inside / options.piece_bytes * options.piece_bytes;
    let place = source.bytes.start + inside / element_bytes * element_bytes;
    let file = source.file;
    let (mut from_place, mut before) = (Vec::with_capacity(sources.len()), Vec::new());
    for mut source in sources {
        // Sources that overlap are rows of one tensor. All of them are cut, so that no byte is read twice.
        match (source.file, source.bytes.start) < (file, place) {
            true => {
                let ends_later = source.file == file && source.bytes.end > place;
                from_place.extend(ends_later.then(|| source.split_off(place)));
                before.push(source);
            }
            false => from_place.push(source),
        }
    }
    from_place.append(&mut before);
    from_place
}

/// The source in which the rank begins, and the offset in it. `None` for the beginning of the first one.
fn place_of_rank(sources: &[TensorSource], options: &PlanOptions) -> Option<(usize, u64)> {
    let (rank, world) = (options.local_rank.rank(), options.local_rank.world());
    let total_bytes: u128 = sources.iter().map(|it| u128::from(it.len_bytes())).sum();
    let mut left = total_bytes * rank as u128 / world as u128;
    if left == 0 {
        return None;
    }
    let first = sources.iter().position(|source| {
        let len_bytes = u128::from(source.len_bytes());
        let is_inside = left < len_bytes;
        left -= if is_inside { 0 } else { len_bytes };
        is_inside
    })?;
    Some((first, u64::try_from(left).expect("less than its length")))
}

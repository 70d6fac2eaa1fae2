//! Moves labels apart until none covers another.

/// Positions close to `wanted`, at least `gap` apart, between `top` and `bottom` while there is room.
/// `wanted` is sorted; so is the result.
pub(super) fn spread_labels(wanted: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    // Neighbours that would touch become a block around their mean position: sum and count.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    let start = |(sum, count): (f64, usize)| sum / count as f64 - (count - 1) as f64 * gap / 2.0;
    for &position in wanted {
        let mut block = (position, 1);
        while let Some(before) = blocks.pop() {
            if start(before) + before.1 as f64 * gap <= start(block) {
                blocks.push(before);
                break;
            }
            block = (block.0 + before.0, block.1 + before.1);
        }
        blocks.push(block);
    }
    let positions =
        |block: (f64, usize)| (0..block.1).map(move |index| start(block) + index as f64 * gap);
    let mut positions: Vec<f64> = blocks.into_iter().flat_map(positions).collect();
    let mut most = bottom;
    for position in positions.iter_mut().rev() {
        *position = position.min(most);
        most = *position - gap;
    }
    let mut least = top;
    for position in &mut positions {
        *position = position.max(least);
        least = *position + gap;
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distant_labels_stay() {
        assert_eq!(spread_labels(&[10.0, 40.0], 16.0, 0.0, 100.0), [10.0, 40.0]);
        assert_eq!(spread_labels(&[], 16.0, 0.0, 100.0), Vec::<f64>::new());
    }

    #[test]
    fn touching_labels_spread_around_their_mean() {
        assert_eq!(spread_labels(&[50.0, 50.0], 16.0, 0.0, 100.0), [42.0, 58.0]);
        assert_eq!(
            spread_labels(&[50.0, 50.0, 60.0, 90.0], 10.0, 0.0, 100.0),
            [
                43.333333333333336,
                53.333333333333336,
                63.333333333333336,
                90.0
            ]
        );
    }

    #[test]
    fn labels_stay_inside() {
        assert_eq!(spread_labels(&[0.0, 0.0], 16.0, 5.0, 100.0), [5.0, 21.0]);
        assert_eq!(
            spread_labels(&[100.0, 100.0], 16.0, 0.0, 100.0),
            [84.0, 100.0]
        );
        let crowd = spread_labels(&[5.0; 4], 16.0, 0.0, 20.0);
        assert!(crowd.windows(2).all(|pair| pair[1] - pair[0] >= 16.0));
    }
}

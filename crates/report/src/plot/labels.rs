//! Names at the ends of lines, moved apart until none covers another.

/// Places near those that are wanted, at least `gap` apart, between `top` and `bottom` as long as
/// there is room. `wanted` is sorted; so is the result.
pub(super) fn apart(wanted: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    // Neighbours that would touch become a block around the middle of what they want.
    let mut blocks: Vec<Block> = Vec::new();
    for &place in wanted {
        let mut block = Block {
            sum: place,
            count: 1,
        };
        while let Some(before) = blocks.pop() {
            if before.end(gap) + gap <= block.start(gap) {
                blocks.push(before);
                break;
            }
            block.sum += before.sum;
            block.count += before.count;
        }
        blocks.push(block);
    }
    let mut places: Vec<f64> = Vec::with_capacity(wanted.len());
    for block in blocks {
        let start = block.start(gap);
        places.extend((0..block.count).map(|index| start + index as f64 * gap));
    }
    let mut most = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - gap;
    }
    let mut least = top;
    for place in &mut places {
        *place = place.max(least);
        least = *place + gap;
    }
    places
}

struct Block {
    sum: f64,
    count: usize,
}

impl Block {
    fn start(&self, gap: f64) -> f64 {
        self.sum / self.count as f64 - (self.count - 1) as f64 * gap / 2.0
    }

    fn end(&self, gap: f64) -> f64 {
        self.start(gap) + (self.count - 1) as f64 * gap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_are_far_apart_stay() {
        assert_eq!(apart(&[10.0, 40.0], 16.0, 0.0, 100.0), [10.0, 40.0]);
        assert_eq!(apart(&[], 16.0, 0.0, 100.0), Vec::<f64>::new());
    }

    #[test]
    fn places_that_touch_spread_around_their_middle() {
        assert_eq!(apart(&[50.0, 50.0], 16.0, 0.0, 100.0), [42.0, 58.0]);
        assert_eq!(
            apart(&[50.0, 50.0, 60.0, 90.0], 10.0, 0.0, 100.0),
            [
                43.333333333333336,
                53.333333333333336,
                63.333333333333336,
                90.0
            ]
        );
    }

    #[test]
    fn edges_push_back() {
        assert_eq!(apart(&[0.0, 0.0], 16.0, 5.0, 100.0), [5.0, 21.0]);
        assert_eq!(apart(&[100.0, 100.0], 16.0, 0.0, 100.0), [84.0, 100.0]);
        let crowd = apart(&[5.0; 4], 16.0, 0.0, 20.0);
        assert!(crowd.windows(2).all(|pair| pair[1] - pair[0] >= 16.0));
    }
}

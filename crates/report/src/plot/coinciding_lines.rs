//! Lines that coincide, moved apart until each can be seen.

/// Points closer than this look like one.
const TOUCHING_PX: f64 = 2.5;

/// Distance between lines side by side: their width and a gap.
const SPACING_PX: f64 = 3.2;

/// A place in a plot, in pixels.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Place {
    pub(super) x_px: f64,
    pub(super) y_px: f64,
}

/// The points of all lines, where those that coincide lie side by side in the order of the lines, and
/// whether any do. Lines move across their own direction, so steep ones stay apart, too.
pub(super) fn side_by_side(lines: &[Vec<Place>]) -> (Vec<Vec<Place>>, bool) {
    let mut moved = lines.to_vec();
    let mut any = false;
    for (number, line) in lines.iter().enumerate() {
        for (index, place) in line.iter().enumerate() {
            let bundle = bundle(lines, *place);
            let Some(rank) = bundle.iter().position(|member| *member == number) else {
                continue;
            };
            any |= bundle.len() > 1;
            let offset_px = (rank as f64 - (bundle.len() - 1) as f64 / 2.0) * SPACING_PX;
            let (across_x, across_y) = across(line, index);
            moved[number][index] = Place {
                x_px: place.x_px + across_x * offset_px,
                y_px: place.y_px + across_y * offset_px,
            };
        }
    }
    (moved, any)
}

/// The lines that have a point here, in order.
fn bundle(lines: &[Vec<Place>], here: Place) -> Vec<usize> {
    let mut points: Vec<(f64, usize)> = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let point = line.iter().find(|place| place.x_px == here.x_px);
        points.extend(point.map(|place| (place.y_px, number)));
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    // From the top: whatever touches the first one belongs to it. So a place is in one bundle only.
    let mut rest = points.as_slice();
    while let Some((first, _)) = rest.first() {
        let len = rest.partition_point(|(y_px, _)| y_px - first < TOUCHING_PX);
        let (bundle, below) = rest.split_at(len.max(1));
        if bundle.iter().any(|(y_px, _)| *y_px == here.y_px) {
            let mut numbers: Vec<usize> = bundle.iter().map(|(_, number)| *number).collect();
            numbers.sort_unstable();
            return numbers;
        }
        rest = below;
    }
    Vec::new()
}

/// The direction across a line at one of its points, of length 1; downwards where the line is level.
fn across(line: &[Place], index: usize) -> (f64, f64) {
    let before = line[index.saturating_sub(1)];
    let after = line[(index + 1).min(line.len() - 1)];
    let (dx, dy) = (after.x_px - before.x_px, after.y_px - before.y_px);
    match dx.hypot(dy) {
        length if length > 0.0 => (-dy / length, dx / length),
        _ => (0.0, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(y_px: f64) -> Vec<Place> {
        [0.0, 50.0, 100.0].map(|x_px| Place { x_px, y_px }).to_vec()
    }

    fn heights(lines: &[Vec<Place>]) -> Vec<f64> {
        lines.iter().map(|line| line[1].y_px).collect()
    }

    #[test]
    fn only_lines_that_touch_move_apart() {
        let apart = [level(10.0), level(20.0)];
        assert_eq!(side_by_side(&apart), (apart.to_vec(), false));
        let (moved, any) = side_by_side(&[level(10.0), level(40.0), level(10.5), level(10.0)]);
        assert!(any);
        assert_eq!(heights(&moved), [6.8, 40.0, 10.5, 13.2]);
    }

    #[test]
    fn steep_lines_move_sideways() {
        let steep: Vec<Place> = [(0.0, 100.0), (0.001, 0.0)]
            .map(|(x_px, y_px)| Place { x_px, y_px })
            .to_vec();
        let (moved, _) = side_by_side(&[steep.clone(), steep]);
        let apart_px = moved[1][0].x_px - moved[0][0].x_px;
        assert!((apart_px - SPACING_PX).abs() < 0.01, "{moved:?}");
    }

    #[test]
    fn a_lone_point_moves_down() {
        let point = vec![Place {
            x_px: 5.0,
            y_px: 5.0,
        }];
        let (moved, any) = side_by_side(&[point.clone(), point]);
        assert!(any);
        assert_eq!([moved[0][0].y_px, moved[1][0].y_px], [3.4, 6.6]);
    }
}

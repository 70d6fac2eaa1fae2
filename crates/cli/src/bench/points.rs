//! What is measured.

use pinlane_report::{MemoryKind, Route};

use crate::measure::Meter;

/// The smallest copy there is.
const SMALLEST_BYTES: usize = 1;

/// One combination.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) memory: MemoryKind,
    pub(super) route: Route,
    pub(super) bytes: usize,
    /// The smallest copy, which stands apart from the sizes.
    pub(super) latency: bool,
}

/// All combinations that the device offers, and notes on those that it does not.
pub(super) fn all(
    meter: &Meter<'_>,
    kinds: &[MemoryKind],
    routes: &[Route],
    sizes: &[usize],
    notes: &mut Vec<String>,
) -> Vec<Point> {
    let mut points = Vec::new();
    for &memory in kinds {
        for &route in routes {
            let point = |bytes, latency| Point {
                memory,
                route,
                bytes,
                latency,
            };
            let mut wanted = vec![point(SMALLEST_BYTES, true)];
            wanted.extend(sizes.iter().map(|bytes| point(*bytes, false)));
            let mut refused = None;
            wanted.retain(|point| {
                let reason = meter.route_refusal(memory, route, point.bytes);
                refused = refused.or(reason);
                reason.is_none()
            });
            if let Some(reason) = refused {
                let (kind, way) = (memory.name(), route.words());
                let which = match wanted.len() {
                    0 => "not measured",
                    _ => "small copies not measured",
                };
                notes.push(format!("{kind}, {way}: {which}: {reason}"));
            }
            points.extend(wanted);
        }
    }
    points
}

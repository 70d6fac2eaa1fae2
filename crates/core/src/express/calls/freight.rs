//! Pieces of a copy, taken down in one pass: thousands of them are read while the link is idle.

use std::collections::HashMap;
use std::ops::Range;

use super::super::route::Route;
use crate::memory::{DeviceRegion, Touch};
use crate::protocol::Extent;

/// Room for more pieces than these is made when they come.
const EXPECTED_AT_MOST: usize = 1 << 16;

/// Which pieces go where, and which device buffers they touch.
pub(super) struct Freight<'a> {
    pub(super) route: Route,
    regions: Vec<(&'a DeviceRegion, Vec<Range<usize>>)>,
    known: HashMap<*const DeviceRegion, usize>,
    last: usize,
    expected: usize,
}

impl<'a> Freight<'a> {
    /// With room for as many pieces as are expected.
    pub(super) fn of(expected: usize) -> Self {
        let expected = expected.min(EXPECTED_AT_MOST); // iterators may say anything
        Self {
            route: Route::of(expected),
            regions: Vec::new(),
            known: HashMap::new(),
            last: 0,
            expected,
        }
    }

    /// One more piece: its host memory, and which bytes of which device buffer.
    pub(super) fn add(&mut self, host: *mut u8, (region, bytes): (&'a DeviceRegion, Range<usize>)) {
        let device = region.ptr().offset(bytes.start);
        self.route.add(host, device, bytes.len());
        // Most pieces lie in the same buffer as the one before.
        let same = self.regions.get(self.last);
        if !same.is_some_and(|(one, _)| std::ptr::eq(*one, region)) {
            let expected = if self.regions.is_empty() {
                self.expected
            } else {
                0
            };
            let regions = &mut self.regions;
            self.last = *self
                .known
                .entry(std::ptr::from_ref(region))
                .or_insert_with(|| {
                    regions.push((region, Vec::with_capacity(expected)));
                    regions.len() - 1
                });
        }
        self.regions[self.last].1.push(bytes);
    }

    /// The route, and one touch for each device buffer, whatever the number of pieces in it.
    pub(super) fn seal(self, writes: bool) -> (Route, Vec<Touch<'a>>) {
        let touch = |(region, ranges)| Touch {
            region,
            extent: Extent::many(ranges),
            writes,
        };
        (self.route, self.regions.into_iter().map(touch).collect())
    }
}

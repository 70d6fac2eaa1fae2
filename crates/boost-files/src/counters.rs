//! The counters, and where each of them lies.

/// Which way a copy goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From host memory to a device.
    Upload,
    /// From a device to host memory.
    Download,
}

impl Direction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Upload, Self::Download];
}

/// Why a copy was left to the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlainReason {
    /// The driver is at least as fast for this size.
    Small,
    /// The host memory is pinned, registered or managed, so the driver copies it directly.
    PageLocked,
    /// The device reads pageable memory by itself, or has none of its own.
    CoherentDevice,
    /// A stream is being captured into a graph.
    Capturing,
    /// The addresses, the context or the driver are not what the library knows.
    NotUnderstood,
    /// The express lane failed, so the driver copied.
    ExpressFailed,
}

impl PlainReason {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Small,
        Self::PageLocked,
        Self::CoherentDevice,
        Self::Capturing,
        Self::NotUnderstood,
        Self::ExpressFailed,
    ];
}

/// Number of size classes.
pub const SIZE_CLASSES: usize = 48;

/// The class of a size: copies from 2ⁿ to 2ⁿ⁺¹ bytes have class n.
#[must_use]
pub fn size_class(bytes: usize) -> usize {
    (bytes.max(1).ilog2() as usize).min(SIZE_CLASSES - 1)
}

/// One counter. Bytes and times belong to the copies that are counted beside them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counter {
    /// The layout's version; 0 while the file is being made.
    Format,
    /// Whether the program found libcuda through the library.
    FoundDriver,
    /// Copies on the express lane of a direction and size class.
    BoostedCopies(Direction, usize),
    /// Their bytes.
    BoostedBytes(Direction, usize),
    /// The time that the program waited for them.
    BoostedNs(Direction, usize),
    /// Copies by the driver.
    PlainCopies(Direction, PlainReason),
    /// Their bytes.
    PlainBytes(Direction, PlainReason),
    /// Copies of rows, batches and arrays, and those between devices, which the library only counts.
    OtherCopies,
    /// Pinned allocations that the library served.
    PinnedAllocations,
    /// Their bytes.
    PinnedBytes,
}

const FIXED: usize = 2;
const BOOSTED: usize = 2 * SIZE_CLASSES;
const PLAIN: usize = 2 * PlainReason::ALL.len();
const TAIL: usize = FIXED + 3 * BOOSTED + 2 * PLAIN;

/// Number of counters.
pub const COUNTERS: usize = TAIL + 3;

impl Counter {
    /// Its place among all counters.
    #[must_use]
    pub fn index(self) -> usize {
        let boosted = |which: usize, direction: Direction, class: usize| {
            FIXED + which * BOOSTED + direction as usize * SIZE_CLASSES + class
        };
        let plain = |which: usize, direction: Direction, reason: PlainReason| {
            let reasons = PlainReason::ALL.len();
            FIXED + 3 * BOOSTED + which * PLAIN + direction as usize * reasons + reason as usize
        };
        match self {
            Self::Format => 0,
            Self::FoundDriver => 1,
            Self::BoostedCopies(direction, class) => boosted(0, direction, class),
            Self::BoostedBytes(direction, class) => boosted(1, direction, class),
            Self::BoostedNs(direction, class) => boosted(2, direction, class),
            Self::PlainCopies(direction, reason) => plain(0, direction, reason),
            Self::PlainBytes(direction, reason) => plain(1, direction, reason),
            Self::OtherCopies => TAIL,
            Self::PinnedAllocations => TAIL + 1,
            Self::PinnedBytes => TAIL + 2,
        }
    }
}

/// The values of all counters, of one process or the sum of several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counters {
    values: Vec<u64>,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            values: vec![0; COUNTERS],
        }
    }
}

impl Counters {
    /// Counters with these values.
    ///
    /// # Panics
    /// Unless there are [`COUNTERS`].
    #[must_use]
    pub fn new(values: Vec<u64>) -> Self {
        assert_eq!(values.len(), COUNTERS);
        Self { values }
    }

    /// The value of a counter.
    #[must_use]
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter.index()]
    }

    /// Adds the counters of another process.
    pub fn add(&mut self, other: &Self) {
        for (value, other) in self.values.iter_mut().zip(&other.values) {
            *value = value.saturating_add(*other);
        }
    }

    /// The sum over all size classes of a direction.
    #[must_use]
    pub fn boosted(&self, counter: fn(Direction, usize) -> Counter, direction: Direction) -> u64 {
        (0..SIZE_CLASSES)
            .map(|class| self.get(counter(direction, class)))
            .sum()
    }

    /// All copies between host and device that were seen.
    #[must_use]
    pub fn copies_seen(&self) -> u64 {
        let one_direction = |direction| {
            let plain = PlainReason::ALL.map(|reason| Counter::PlainCopies(direction, reason));
            let plain: u64 = plain.iter().map(|counter| self.get(*counter)).sum();
            self.boosted(Counter::BoostedCopies, direction) + plain
        };
        Direction::ALL.into_iter().map(one_direction).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every counter that there is.
    fn all() -> Vec<Counter> {
        use Counter::*;
        let mut all = vec![
            Format,
            FoundDriver,
            OtherCopies,
            PinnedAllocations,
            PinnedBytes,
        ];
        for direction in Direction::ALL {
            for class in 0..SIZE_CLASSES {
                all.push(BoostedCopies(direction, class));
                all.push(BoostedBytes(direction, class));
                all.push(BoostedNs(direction, class));
            }
            for reason in PlainReason::ALL {
                all.push(PlainCopies(direction, reason));
                all.push(PlainBytes(direction, reason));
            }
        }
        all
    }

    #[test]
    fn each_counter_has_a_place_of_its_own() {
        let places: BTreeSet<_> = all().into_iter().map(Counter::index).collect();
        assert_eq!(places.len(), all().len());
        assert_eq!(places, (0..COUNTERS).collect());
    }

    #[test]
    fn sizes_have_classes() {
        assert_eq!((size_class(0), size_class(1)), (0, 0));
        assert_eq!((size_class(4095), size_class(4096)), (11, 12));
        assert_eq!(size_class(usize::MAX), SIZE_CLASSES - 1);
    }

    #[test]
    fn copies_of_both_kinds_are_seen() {
        let mut values = vec![0; COUNTERS];
        values[Counter::BoostedCopies(Direction::Upload, 20).index()] = 3;
        values[Counter::PlainCopies(Direction::Download, PlainReason::Small).index()] = 4;
        values[Counter::OtherCopies.index()] = 100;
        let mut counters = Counters::new(values);
        assert_eq!(counters.copies_seen(), 7);
        counters.add(&counters.clone());
        assert_eq!(counters.copies_seen(), 14);
    }
}

//! Sets of CPUs and NUMA nodes in the kernel's notation: `0-3,8,10-11`.

use std::fmt;

/// A set of numbers as sorted, disjoint ranges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct IdSet(Vec<(u32, u32)>);

impl IdSet {
    /// `None` if the text is not a set.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut ranges = Vec::new();
        for part in text.trim().split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            if first > last {
                return None;
            }
            ranges.push((first, last));
        }
        ranges.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::new();
        for (first, last) in ranges {
            match joined.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => joined.push((first, last)),
            }
        }
        Some(Self(joined))
    }

    pub(crate) fn count(&self) -> u64 {
        let length = |(first, last): &(u32, u32)| u64::from(last - first) + 1;
        self.0.iter().map(length).sum()
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        let mut ranges = self.0.iter();
        ranges.any(|(first, last)| (*first..=*last).contains(&number))
    }

    /// The size of the intersection.
    pub(crate) fn count_common(&self, other: &Self) -> u64 {
        let mut common = 0;
        let (mut ours, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(our), Some(their)) = (ours.peek(), theirs.peek()) {
            let (first, last) = (our.0.max(their.0), our.1.min(their.1));
            if first <= last {
                common += u64::from(last - first) + 1;
            }
            if our.1 <= their.1 {
                ours.next();
            } else {
                theirs.next();
            }
        }
        common
    }
}

impl fmt::Display for IdSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (first, last)) in self.0.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> IdSet {
        IdSet::parse(text).expect(text)
    }

    #[test]
    fn ranges_are_joined_and_counted() {
        for (text, count, shown) in [
            ("0", 1, "0"),
            ("0-3,8,10-11\n", 7, "0-3,8,10-11"),
            ("4-7,0-3", 8, "0-7"),
            ("0-4294967295", 1 << 32, "0-4294967295"),
            ("1,1,1-2", 2, "1-2"),
        ] {
            let set = set(text);
            assert_eq!((set.count(), set.to_string().as_str()), (count, shown));
        }
        assert!(set("0-3,8").contains(8) && !set("0-3,8").contains(7));
    }

    #[test]
    fn intersections_are_counted_without_listing_them() {
        for (one, other, count) in [
            ("0-7", "4-11", 4),
            ("0-3", "4-7", 0),
            ("0,2,4,6", "0-6", 4),
            ("0-1,8-9", "1-8", 2),
            ("0-4294967295", "5-4294967295", (1 << 32) - 5),
        ] {
            assert_eq!(set(one).count_common(&set(other)), count);
            assert_eq!(set(other).count_common(&set(one)), count);
        }
    }

    #[test]
    fn junk_is_rejected() {
        for text in ["", " ", "a", "3-1", "1-", "-", "1,,2", "4294967296", "0x1"] {
            assert_eq!(IdSet::parse(text), None, "{text:?}");
        }
    }
}

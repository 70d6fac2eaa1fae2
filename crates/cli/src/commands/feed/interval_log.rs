//! The course of a run, in a bounded number of intervals however long it takes.

use pinlane_report::FeedInterval;

/// More would not be told apart in a picture.
const INTERVALS_MAX: usize = 64;

/// Intervals of equally many batches, joined in pairs whenever there are too many.
pub(super) struct IntervalLog {
    intervals: Vec<FeedInterval>,
    batches_each: u64,
    last_ns: Option<u64>,
}

impl IntervalLog {
    pub(super) fn new() -> Self {
        Self {
            intervals: Vec::new(),
            batches_each: 1,
            last_ns: None,
        }
    }

    /// Adds a batch that arrived at `now_ns`, after the consumer had waited for it.
    pub(super) fn add(&mut self, now_ns: u64, wait_ns: u64, samples: u64) {
        let Some(start_ns) = self.last_ns.replace(now_ns) else {
            // What comes before the first batch is the start.
            return;
        };
        let batch = FeedInterval {
            start_ns,
            end_ns: now_ns,
            batches: 1,
            samples,
            wait_ns,
            wait_max_ns: wait_ns,
        };
        match self.intervals.last_mut() {
            Some(last) if last.batches < self.batches_each => *last = last.joined(batch),
            _ => {
                if self.intervals.len() == INTERVALS_MAX {
                    self.join_pairs();
                }
                self.intervals.push(batch);
            }
        }
    }

    fn join_pairs(&mut self) {
        let pairs = self.intervals.chunks_exact(2);
        self.intervals = pairs.map(|pair| pair[0].joined(pair[1])).collect();
        self.batches_each *= 2;
    }

    /// The intervals. A last one of few batches belongs to the one before it: its rate would say little.
    pub(super) fn finish(mut self) -> Vec<FeedInterval> {
        let is_short = |last: &FeedInterval| last.batches * 2 < self.batches_each;
        if self.intervals.len() > 1 && self.intervals.last().is_some_and(is_short) {
            let last = self.intervals.pop().expect("more than one");
            let before = self.intervals.pop().expect("more than one");
            self.intervals.push(before.joined(last));
        }
        self.intervals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intervals(batches: u64) -> Vec<FeedInterval> {
        let mut log = IntervalLog::new();
        for number in 0..batches {
            log.add(100 + 10 * number, number % 3, 4);
        }
        log.finish()
    }

    #[test]
    fn the_first_batch_is_the_start() {
        assert_eq!(intervals(0), []);
        assert_eq!(intervals(1), []);
        let first = FeedInterval {
            start_ns: 100,
            end_ns: 110,
            batches: 1,
            samples: 4,
            wait_ns: 1,
            wait_max_ns: 1,
        };
        assert_eq!(intervals(2), [first]);
    }

    #[test]
    fn intervals_cover_every_batch_and_stay_few() {
        for batches in [2, 64, 65, 66, 128, 129, 1000, 4097, 100_000] {
            let intervals = intervals(batches);
            assert!(intervals.len() <= INTERVALS_MAX, "{batches}");
            assert!(
                batches < 66 || intervals.len() > INTERVALS_MAX / 2 - 1,
                "{batches}"
            );
            let sum = |of: fn(&FeedInterval) -> u64| intervals.iter().map(of).sum::<u64>();
            assert_eq!(sum(|it| it.batches), batches - 1);
            assert_eq!(sum(|it| it.samples), 4 * (batches - 1));
            assert_eq!(
                sum(|it| it.wait_ns),
                (1..batches).map(|n| n % 3).sum::<u64>()
            );
            assert_eq!(intervals[0].start_ns, 100);
            assert_eq!(intervals[intervals.len() - 1].end_ns, 90 + 10 * batches);
            for pair in intervals.windows(2) {
                assert_eq!(pair[0].end_ns, pair[1].start_ns);
            }
        }
    }
}

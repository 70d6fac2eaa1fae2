//! Epochs that are resumed with other ranks.

use pinlane::load::{EpochState, OrderConfig, Sample, SampleOrder, Shard, Tail};
use pinlane::model::SplitMix64;
use pinlane_testing::full_or;

/// The states of all ranks, and what they have read.
struct Training {
    samples: usize,
    config: OrderConfig,
    state: EpochState,
    seen: Vec<Sample>,
}

impl Training {
    fn start(samples: usize, config: OrderConfig) -> Self {
        Self {
            samples,
            config,
            state: EpochState::new(1, 0, &config, samples),
            seen: Vec::new(),
        }
    }

    /// The orders of `world` ranks from here on, and the batch that they begin with.
    fn orders(&self, world: usize, batch: usize) -> (Vec<SampleOrder>, u64) {
        let orders = (0..world).map(|rank| {
            let shard = Shard::new(rank, world).expect("a rank");
            let config = self.config.batch(batch).shard(shard);
            self.state
                .remaining(&config, self.samples)
                .expect("the same samples")
        });
        let (orders, firsts): (Vec<_>, Vec<_>) = orders.unzip();
        assert!(firsts.iter().all(|first| *first == firsts[0]));
        (orders, firsts[0])
    }

    /// Number of batches that each of `world` ranks has left.
    fn batches_left(&self, world: usize, batch: usize) -> usize {
        let (orders, first) = self.orders(world, batch);
        orders[0].batches() - usize::try_from(first).expect("small")
    }

    /// Reads `batches` batches on each of `world` ranks, then saves the state of any of them. Returns each step's
    /// samples over all ranks.
    fn read(
        &mut self,
        world: usize,
        batch: usize,
        batches: usize,
        saved_by: usize,
    ) -> Vec<Vec<Sample>> {
        let (orders, first) = self.orders(world, batch);
        let mut steps = Vec::new();
        for step in 0..batches {
            let number = usize::try_from(first).expect("small") + step;
            let step: Vec<Sample> = orders
                .iter()
                .flat_map(|order| order.batch(number))
                .collect();
            self.seen.extend(&step);
            steps.push(step);
        }
        let state = orders[saved_by % world].state(first + batches as u64);
        let text = serde_json::to_string(&state).expect("JSON");
        self.state = serde_json::from_str(&text).expect("a state");
        steps
    }

    /// Fails unless every sample came once, apart from padding and, with `Tail::Drop`, less than a step.
    fn assert_complete(&self, last_step: usize) {
        let mut count = vec![0; self.samples];
        for sample in self.seen.iter().filter(|sample| !sample.padding) {
            count[sample.index] += 1;
        }
        assert!(count.iter().all(|times| *times <= 1), "a sample came twice");
        let missing = count.iter().filter(|times| **times == 0).count();
        match self.config.tail {
            Tail::Drop => assert!(missing < last_step, "{missing} samples are missing"),
            _ => assert_eq!(missing, 0),
        }
    }
}

/// Reduced unless `PINLANE_TEST=full`.
#[test]
fn four_ranks_then_two_then_three_see_every_sample_once() {
    for seed in 0..full_or(500, 60) {
        let mut random = SplitMix64::new(seed);
        let samples = 1 + random.below(400) as usize;
        let tail = *random.pick(&[Tail::Keep, Tail::Drop, Tail::Pad]);
        let config = OrderConfig::default()
            .seed(seed)
            .shuffle(random.below(4) > 0)
            .tail(tail);
        let [first, second, third] = [(); 3].map(|()| 1 + random.below(9) as usize);
        let saved_by = random.below(12) as usize;
        let whole = Training::start(samples, config);
        // At every boundary of the first ranks, and a random one of the second.
        for stop in 0..=whole.batches_left(4, first) {
            let mut training = Training::start(samples, config);
            training.read(4, first, stop, saved_by);
            let left = training.batches_left(2, second);
            training.read(2, second, random.below(left as u64 + 1) as usize, saved_by);
            let left = training.batches_left(3, third);
            training.read(3, third, left, saved_by);
            training.assert_complete(4 * first + 2 * second + 3 * third);
        }
    }
}

#[test]
fn steps_are_the_same_while_their_size_is() {
    let config = OrderConfig::default().seed(3).shuffle(true);
    let sorted = |steps: Vec<Vec<Sample>>| -> Vec<Vec<usize>> {
        let indices = |step: Vec<Sample>| {
            let mut indices: Vec<_> = step.into_iter().map(|sample| sample.index).collect();
            indices.sort_unstable();
            indices
        };
        steps.into_iter().map(indices).collect()
    };
    let mut whole = Training::start(240, config);
    let expected = sorted(whole.read(4, 3, 20, 0));
    for stop in 0..=20 {
        let mut training = Training::start(240, config);
        let mut steps = training.read(4, 3, stop, 1);
        let left = training.batches_left(2, 6);
        steps.extend(training.read(2, 6, left, 0));
        assert_eq!(sorted(steps), expected);
    }
}

#[test]
fn dropped_samples_stay_dropped() {
    let config = OrderConfig::default().tail(Tail::Drop);
    let mut training = Training::start(11, config);
    training.read(2, 4, 1, 0);
    assert_eq!(training.batches_left(2, 4), 0);
    assert_eq!(training.batches_left(1, 1), 0);
}

//! Every sample exactly once over all ranks, except for the tail.

use pinlane::load::{OrderConfig, SampleOrder, Shard, Tail};

const TAILS: [Tail; 3] = [Tail::Keep, Tail::Drop, Tail::Pad];
const BATCHES: [usize; 7] = [1, 2, 3, 5, 8, 17, 32];

/// Count the samples over all ranks.
fn check(samples: usize, world: usize, config: OrderConfig) {
    let describe = || format!("{samples} samples, {world} ranks, {config:?}");
    let (mut seen, mut padding) = (vec![0_u32; samples], 0);
    let mut shape = None;
    for rank in 0..world {
        let shard = Shard::new(rank, world).expect("a rank");
        let order = SampleOrder::new(samples, 3, &config.shard(shard)).expect("an order");
        // All ranks have the same number of samples and batches.
        let this = (order.samples(), order.batches());
        assert_eq!(*shape.get_or_insert(this), this, "{}", describe());
        let mut position = 0_usize;
        for batch in 0..order.batches() {
            let full = batch + 1 < order.batches() || config.tail != Tail::Keep;
            let len = order.batch_len(batch);
            assert!(len == config.batch || (!full && (1..config.batch).contains(&len)));
            for (sample, at) in order.batch(batch).zip(position..) {
                // Checking some is enough: `batch` makes the same calls.
                if at.is_multiple_of(5) {
                    assert_eq!(sample, order.sample(at));
                }
                match sample.padding {
                    true => padding += 1,
                    false => seen[sample.index] += 1,
                }
            }
            position += len;
        }
        assert_eq!(position, order.samples(), "{}", describe());
    }
    let once = seen.iter().filter(|times| **times == 1).count();
    let never = seen.iter().filter(|times| **times == 0).count();
    assert_eq!(once + never, samples, "a sample twice: {}", describe());
    let total = shape.map_or(0, |(samples, _)| samples * world);
    assert_eq!(once + padding, total, "{}", describe());
    match config.tail {
        Tail::Keep => assert!(never == 0 && padding < world, "{}", describe()),
        Tail::Drop => assert!(
            padding == 0 && never < world * config.batch,
            "{}",
            describe()
        ),
        _ => assert!(
            never == 0 && padding < world * config.batch,
            "{}",
            describe()
        ),
    }
}

/// With each tail as numbered, and shuffled with one of them; which one, and the size of the batch,
/// goes round with the case.
fn check_all(samples: usize, world: usize) {
    for (number, tail) in TAILS.into_iter().enumerate() {
        let shuffled = (samples + world) % TAILS.len() == number;
        for shuffle in [false, true].into_iter().take(1 + usize::from(shuffled)) {
            let turn = samples + world + 3 * number + usize::from(shuffle);
            check(
                samples,
                world,
                OrderConfig::default()
                    .seed(turn as u64)
                    .shuffle(shuffle)
                    .batch(BATCHES[turn % BATCHES.len()])
                    .tail(tail)
                    .shard(Shard::whole()),
            );
        }
    }
}

#[test]
fn small_datasets_on_few_ranks() {
    (1..=32).for_each(|world| (0..=300).for_each(|samples| check_all(samples, world)));
}

#[test]
fn small_datasets_on_many_ranks() {
    (33..=64).for_each(|world| (0..=300).for_each(|samples| check_all(samples, world)));
}

/// Around powers of two, where the network grows, and around multiples of world and batch.
#[test]
fn larger_datasets() {
    for world in 1..=64 {
        let turn = world % 4;
        let powers = [
            511, 512, 513, 1_023, 1_024, 1_025, 2_048, 2_049, 4_095, 4_097, 8_191, 8_193,
        ];
        for samples in powers.into_iter().skip(turn).step_by(4) {
            check_all(samples, world);
        }
        check_all(world * 64 - 1, world);
        check_all(world * 64 + 1, world);
        check_all([9_973, 9_999, 10_000, 9_000][turn], world);
    }
}

/// Each size of a batch with each tail, where the sizes are all that differs.
#[test]
fn every_batch_size() {
    for batch in 1..=130_usize {
        for tail in TAILS {
            for (samples, world) in [(0, 3), (1, 1), (1, 64), (64, 1), (127, 2), (130, 3)] {
                let shuffle = batch.is_multiple_of(2);
                let shard = Shard::whole();
                check(
                    samples,
                    world,
                    OrderConfig::default()
                        .seed(1)
                        .shuffle(shuffle)
                        .batch(batch)
                        .tail(tail)
                        .shard(shard),
                );
            }
        }
    }
}

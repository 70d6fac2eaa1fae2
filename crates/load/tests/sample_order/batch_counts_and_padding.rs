//! Numbers of samples and batches, padding, and the largest numbers.

use pinlane::load::{OrderConfig, OrderError, Sample, SampleOrder, Shard, Tail};

fn order(samples: usize, world: usize, rank: usize, batch: usize, tail: Tail) -> SampleOrder {
    let shard = Shard::new(rank, world).expect("a rank");
    let config = OrderConfig::default().batch(batch).tail(tail).shard(shard);
    SampleOrder::new(samples, 0, &config).expect("an order")
}

fn indices(order: &SampleOrder) -> Vec<usize> {
    (0..order.batches())
        .flat_map(|batch| order.batch(batch))
        .map(|sample| sample.index)
        .collect()
}

#[test]
fn the_default_is_dataset_order() {
    let order = SampleOrder::new(5, 9, &OrderConfig::default()).expect("an order");
    assert_eq!(indices(&order), [0, 1, 2, 3, 4]);
    assert_eq!(order.batches(), 5);
}

#[test]
fn ranks_take_turns() {
    assert_eq!(indices(&order(10, 3, 0, 4, Tail::Keep)), [0, 3, 6, 9]);
    assert_eq!(indices(&order(10, 3, 1, 4, Tail::Keep)), [1, 4, 7, 0]);
    assert_eq!(indices(&order(10, 3, 2, 4, Tail::Keep)), [2, 5, 8, 1]);
}

#[test]
fn tails_are_kept_dropped_or_padded() {
    let kept = order(10, 1, 0, 4, Tail::Keep);
    assert_eq!(
        [0, 1, 2, 3].map(|batch| kept.batch_len(batch)),
        [4, 4, 2, 0]
    );
    assert_eq!(kept.batch(3).len(), 0);

    let dropped = order(10, 1, 0, 4, Tail::Drop);
    assert_eq!((dropped.batches(), dropped.samples()), (2, 8));
    assert_eq!(order(3, 1, 0, 4, Tail::Drop).batches(), 0);

    let filled = order(10, 1, 0, 4, Tail::Pad);
    assert_eq!((filled.batches(), filled.samples()), (3, 12));
    let last: Vec<Sample> = filled.batch(2).collect();
    let sample = |index, padding| Sample { index, padding };
    let expected = [
        sample(8, false),
        sample(9, false),
        sample(0, true),
        sample(1, true),
    ];
    assert_eq!(last, expected);
}

#[test]
fn one_sample_can_fill_many_batches() {
    let order = order(1, 8, 7, 3, Tail::Pad);
    assert_eq!(indices(&order), [0, 0, 0]);
    assert!(order.batch(0).all(|sample| sample.padding));
}

#[test]
fn an_empty_dataset_has_no_batches() {
    for tail in [Tail::Keep, Tail::Drop, Tail::Pad] {
        let nothing = order(0, 4, 3, 2, tail);
        assert_eq!((nothing.samples(), nothing.batches()), (0, 0));
        assert_eq!(nothing.batch_len(0), 0);
    }
}

#[test]
fn a_batch_size_of_zero_is_an_error() {
    let config = OrderConfig::default().batch(0);
    assert_eq!(
        SampleOrder::new(3, 0, &config).err(),
        Some(OrderError::BatchZero)
    );
}

#[test]
#[should_panic(expected = "position 3 is past the end of 3 samples")]
fn a_position_past_the_end_panics() {
    let _ = order(3, 1, 0, 1, Tail::Keep).sample(3);
}

/// The most samples, on the most ranks.
#[test]
fn the_largest_numbers() {
    let most = usize::MAX;
    let config = |rank, world, batch, tail| {
        OrderConfig::default()
            .shuffle(true)
            .batch(batch)
            .tail(tail)
            .shard(Shard::new(rank, world).expect("a rank"))
    };
    let order = SampleOrder::new(most, 1, &config(0, 1, 1, Tail::Keep)).expect("an order");
    assert_eq!(order.batches(), most);
    assert!(!order.sample(most - 1).padding);

    let order = SampleOrder::new(most, 1, &config(6, 7, most, Tail::Keep)).expect("an order");
    assert_eq!(order.batches(), 1);
    let _ = order.sample(order.samples() - 1);

    let order = SampleOrder::new(5, 1, &config(most - 1, most, 1, Tail::Keep)).expect("an order");
    assert!(order.sample(0).padding);

    let error = SampleOrder::new(most, 1, &config(0, 1, 1 << 40, Tail::Pad)).expect_err("too many");
    assert_eq!(
        error,
        OrderError::TooManySamples {
            samples: most,
            batch: 1 << 40
        }
    );
}

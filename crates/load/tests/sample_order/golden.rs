//! Orders that must never change: saved epochs depend on them.

use pinlane::load::{OrderConfig, SampleOrder, Shard, Tail};

fn first(samples: usize, seed: u64, epoch: u64, shard: Shard) -> Vec<usize> {
    let config = OrderConfig::default()
        .seed(seed)
        .shuffle(true)
        .batch(8)
        .tail(Tail::Keep)
        .shard(shard);
    let order = SampleOrder::new(samples, epoch, &config).expect("an order");
    order.batch(0).map(|sample| sample.index).collect()
}

#[test]
fn orders_never_change() {
    let whole = Shard::whole();
    let second = Shard::new(1, 2).expect("a rank");
    assert_eq!(first(10, 0, 0, whole), [5, 3, 4, 7, 0, 8, 2, 1]);
    assert_eq!(first(10, 0, 1, whole), [7, 3, 1, 6, 9, 2, 0, 4]);
    assert_eq!(
        first(1_000, 42, 7, whole),
        [97, 399, 614, 519, 499, 665, 530, 884]
    );
    assert_eq!(
        first(1_000, 42, 7, second),
        [399, 519, 665, 884, 968, 299, 442, 516]
    );
    assert_eq!(
        first(1_281_167, 1, 0, whole),
        [
            343100, 676801, 1192401, 816953, 684743, 329399, 964481, 921621
        ]
    );
    assert_eq!(
        first(1 << 40, u64::MAX, u64::MAX, whole),
        [
            250488410868,
            627845034085,
            750927095233,
            540391461809,
            883736168948,
            614719378076,
            407948432317,
            692536588553
        ]
    );
}

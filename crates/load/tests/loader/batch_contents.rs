//! All bytes of all samples, for any batch size, order and number of threads.

use pinlane::load::{OrderConfig, SampleOrder, Shard, Tail};

use super::support::{Made, Rig, config, drain};
use pinlane_testing::must_return;

#[test]
fn every_size_and_every_number_of_threads() {
    for samples in [0, 1, 2, 5, 16, 17, 40] {
        for batch in [1, 3, 8, 50] {
            for workers in [0, 1, 2, 5] {
                must_return(move || {
                    let rig = Rig::new();
                    let loader = rig.loader(Made::new(samples), config(batch, workers));
                    let (found, error) = drain(&rig, loader.epoch(0).expect("no epoch is running"));
                    assert!(error.is_none(), "{error:?}");
                    let indices: Vec<_> = (0..samples).collect();
                    let expected: Vec<_> = indices.chunks(batch).map(<[_]>::to_vec).collect();
                    assert_eq!(found, expected);
                    assert_eq!(loader.batches(), expected.len());
                    drop(loader);
                    rig.assert_clean();
                });
            }
        }
    }
}

#[test]
fn the_order_of_seed_epoch_and_shard() {
    for tail in [Tail::Keep, Tail::Drop, Tail::Pad] {
        for (rank, world) in [(0, 1), (0, 3), (2, 3)] {
            for workers in [0, 1, 3] {
                let rig = Rig::new();
                let shard = Shard::new(rank, world).expect("a rank of its world");
                let mut config = config(4, workers);
                (config.shuffle, config.seed) = (true, 5);
                (config.tail, config.shard) = (tail, shard);
                let loader = rig.loader(Made::new(31), config);
                let order = OrderConfig::default()
                    .seed(5)
                    .shuffle(true)
                    .batch(4)
                    .tail(tail)
                    .shard(shard);
                for epoch in [0, 3, 1] {
                    let order = SampleOrder::new(31, epoch, &order).expect("a valid order");
                    let mut batches = loader.epoch(epoch).expect("no epoch is running");
                    for number in 0..order.batches() {
                        let batch = batches.next().expect("one more").expect("no error");
                        let samples: Vec<_> = order.batch(number).collect();
                        let indices: Vec<_> = samples.iter().map(|sample| sample.index).collect();
                        assert_eq!(batch.indices(), indices);
                        let padding = samples.iter().filter(|sample| sample.padding).count();
                        assert_eq!(batch.padding(), padding);
                        rig.check(&batch);
                    }
                    assert!(batches.next().is_none());
                    assert!(batches.next().is_none());
                }
                drop(loader);
                rig.assert_clean();
            }
        }
    }
}

#[test]
fn many_epochs_use_the_same_memory() {
    let rig = Rig::new();
    let loader = rig.loader(Made::new(40), config(5, 2));
    let mut held = None;
    for epoch in 0..20 {
        let (batches, error) = drain(&rig, loader.epoch(epoch).expect("the last has ended"));
        assert!(batches.len() == 8 && error.is_none());
        let stats = rig.device.stats();
        assert!(stats.pinned_bytes > 0);
        let held = held.get_or_insert(stats.pinned_bytes);
        assert!(stats.pinned_bytes <= *held.max(&mut (4 * 4096)));
    }
    drop(loader);
    rig.assert_clean();
}

#[test]
fn two_loaders_on_one_device() {
    let rig = Rig::new();
    let one = rig.loader(Made::new(23), config(4, 2));
    let other = rig.loader(Made::new(31), config(3, 1));
    let batches = one
        .epoch(0)
        .expect("none")
        .zip(other.epoch(9).expect("none"));
    let mut pairs = 0;
    for (one, other) in batches {
        rig.check(&one.expect("no error"));
        rig.check(&other.expect("no error"));
        pairs += 1;
    }
    assert_eq!(pairs, 6);
    drop((one, other));
    rig.assert_clean();
}

#[test]
fn samples_without_bytes() {
    use pinlane::load::Dtype;
    use pinlane::load::dataset::{Dataset, Field, SampleError, SampleMut};

    struct Bare(Vec<Field>);

    impl Dataset for Bare {
        fn len(&self) -> usize {
            5
        }

        fn fields(&self) -> &[Field] {
            &self.0
        }

        fn read(&self, _: usize, _: &mut SampleMut<'_>) -> Result<(), SampleError> {
            Ok(())
        }
    }

    for fields in [vec![], vec![Field::fixed("none", Dtype::F32, [3, 0])]] {
        let rig = Rig::new();
        let loader = rig.loader(Bare(fields.clone()), config(2, 1));
        let batches = loader.epoch(0).expect("no epoch is running");
        let lens: Vec<_> = batches
            .map(|batch| batch.expect("no error").len())
            .collect();
        assert_eq!(lens, [2, 2, 1]);
        drop(loader);
        rig.assert_clean();
    }
}

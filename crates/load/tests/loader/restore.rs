//! Resuming an epoch.

use pinlane::load::{LoaderConfig, LoaderError, Shard, Tail};

use super::support::{Made, Rig, config};

fn shuffled(workers: usize) -> LoaderConfig {
    config(4, workers).shuffle(true).seed(77).tail(Tail::Keep)
}

#[test]
fn at_every_batch() {
    for workers in [0, 1, 3] {
        let rig = Rig::new();
        let loader = rig.loader(Made::new(30), shuffled(workers));
        let all: Vec<Vec<usize>> = loader
            .epoch(2)
            .expect("no epoch is running")
            .map(|batch| batch.expect("no error").indices().to_vec())
            .collect();
        for at in 0..=all.len() {
            let loader = rig.loader(Made::new(30), shuffled(workers));
            let mut epoch = loader.epoch(2).expect("no epoch is running");
            for batch in epoch.by_ref().take(at) {
                batch.expect("no error");
            }
            let state = loader.state();
            assert_eq!(state, epoch.state());
            assert_eq!((state.epoch, state.batch), (2, at as u64));
            drop((epoch, loader));

            let loader = rig.loader(Made::new(30), shuffled(workers));
            let rest = loader.restore(&state).expect("the same order");
            assert_eq!(rest.number(), 2);
            assert_eq!(loader.state(), state);
            let mut left = Vec::new();
            for (number, batch) in (at as u64..).zip(rest) {
                let batch = batch.expect("no error");
                assert_eq!(batch.number(), number);
                rig.check(&batch);
                left.push(batch.indices().to_vec());
            }
            assert_eq!(left, all[at..]);
            assert_eq!(loader.state().batch, all.len() as u64);
        }
        drop(loader);
        rig.assert_clean();
    }
}

/// A finished epoch has no batches left; the next one is started by number.
#[test]
fn at_the_end() {
    let rig = Rig::new();
    let loader = rig.loader(Made::new(30), shuffled(2));
    let mut epoch = loader.epoch(5).expect("no epoch is running");
    assert_eq!(epoch.by_ref().filter(Result::is_ok).count(), 8);
    let state = epoch.state();
    assert_eq!((state.epoch, state.batch), (5, 8));
    drop((epoch, loader));

    let loader = rig.loader(Made::new(30), shuffled(2));
    let mut left = loader.restore(&state).expect("the same order");
    assert_eq!(left.size_hint().1, Some(1), "an error at most");
    assert!(left.next().is_none());
    assert_eq!((left.state(), loader.state()), (state, state));
    let next = loader.epoch(state.epoch + 1).expect("it has ended");
    assert_eq!((loader.state().epoch, loader.state().batch), (6, 0));
    assert_eq!(next.filter(Result::is_ok).count(), 8);
    drop((left, loader));
    rig.assert_clean();
}

#[test]
fn of_another_order() {
    let rig = Rig::new();
    let state = rig.loader(Made::new(30), shuffled(1)).state();
    let mut other = shuffled(1);
    other.seed = 78;
    for loader in [
        rig.loader(Made::new(30), other),
        rig.loader(Made::new(31), shuffled(1)),
        rig.loader(Made::new(30), config(4, 1)),
    ] {
        let error = loader.restore(&state).expect_err("it is of another order");
        let checked = loader
            .batches_left(&state)
            .expect_err("it is of another order");
        assert_eq!(checked.to_string(), error.to_string());
        assert!(matches!(error, LoaderError::Order(_)), "{error}");
        // The loader can start another epoch.
        assert!(loader.epoch(0).is_ok());
    }
    rig.assert_clean();
}

/// Four ranks, then two, then three, with batches of other sizes.
#[test]
fn with_other_ranks() {
    let rig = Rig::new();
    let mut seen: Vec<usize> = Vec::new();
    let mut state = None;
    for (world, batch, batches, read_before) in [(4, 3, 2, 0), (2, 5, 1, 24), (3, 4, 99, 34)] {
        let mut saved = None;
        for rank in 0..world {
            let shard = Shard::new(rank, world).expect("a rank");
            let loader = rig.loader(Made::new(100), shuffled(1).batch(batch).shard(shard));
            let epoch = match &state {
                None => loader.epoch(4).expect("no epoch is running"),
                Some(state) => {
                    let left = loader.batches_left(state).expect("the same samples");
                    assert_eq!(
                        left as usize,
                        (100_usize - read_before).div_ceil(world * batch)
                    );
                    loader.restore(state).expect("the same samples")
                }
            };
            for batch in epoch.take(batches) {
                let batch = batch.expect("no error");
                rig.check(&batch);
                seen.extend(&batch.indices()[..batch.indices().len() - batch.padding()]);
            }
            // That of any rank will do.
            saved = Some(loader.state());
        }
        state = saved;
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..100).collect::<Vec<_>>());
    rig.assert_clean();
}

#[test]
fn prefetched_batches_do_not_count() {
    let rig = Rig::new();
    let loader = rig.loader(Made::new(40), shuffled(2));
    let mut epoch = loader.epoch(0).expect("no epoch is running");
    assert_eq!(loader.state().batch, 0);
    let batch = epoch.next().expect("a batch").expect("no error");
    assert_eq!(loader.state().batch, 1);
    drop((batch, epoch));
    assert_eq!(loader.state().batch, 1);
    drop(loader);
    rig.assert_clean();
}

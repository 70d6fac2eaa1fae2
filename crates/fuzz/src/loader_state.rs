//! Saved states of a loader.

use pinlane_load::{EpochState, OrderConfig, OrderError, Shard};

/// A state as JSON. If it can be resumed, the samples that are left exist.
pub fn state(data: &[u8]) {
    let Ok(state) = serde_json::from_slice::<EpochState>(data) else {
        return;
    };
    let text = serde_json::to_string(&state).expect("plain numbers");
    assert_eq!(serde_json::from_str::<EpochState>(&text).ok(), Some(state));
    let Ok(shard) = Shard::new(state.rank as usize, state.world as usize) else {
        return;
    };
    let config = OrderConfig::default()
        .seed(state.seed)
        .shuffle(state.shuffle)
        .batch(state.batch_size as usize)
        .tail(state.tail)
        .shard(shard);
    let samples = state.samples as usize;
    if let Err(error) = state.check(&config, samples) {
        let text = error.to_string();
        assert!(text.len() < 300 && !text.contains(char::is_control));
        // Everything else is as it was saved.
        assert!(!matches!(error, OrderError::StateDiffers { .. }), "{error}");
        return;
    }
    let (order, next) = state.remaining(&config, samples).expect("it was checked");
    let (next, batches) = (next as usize, order.batches());
    assert!(next <= batches && (1..=EpochState::VERSION).contains(&state.version));
    assert_eq!(order.batch_len(batches), 0);
    for batch in [next, batches.saturating_sub(1)] {
        assert_eq!(order.batch(batch).len(), order.batch_len(batch));
        for sample in order.batch(batch).take(8) {
            assert!(sample.index < samples);
        }
    }
    let mut saved = EpochState::new(state.epoch, state.batch, &config, samples);
    (saved.version, saved.start) = (state.version, state.start);
    assert_eq!(saved, state);
    // Other ranks go on with what is left.
    for (rank, world) in [(0, 1), (2, 3)] {
        let other = config
            .batch(3)
            .shard(Shard::new(rank, world).expect("a rank"));
        if let Ok((order, first)) = state.remaining(&other, samples) {
            for sample in order.batch(first as usize).take(8) {
                assert!(sample.index < samples);
            }
        }
    }
    let other = config.seed(state.seed ^ 1);
    assert!(state.check(&other, samples).is_err());
}

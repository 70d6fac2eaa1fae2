//! Saved states of a loader.

use pinlane_load::{EpochState, OrderConfig, OrderError, SampleOrder, Shard};

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
    let order = SampleOrder::new(samples, state.epoch, &config).expect("it was checked");
    let (next, batches) = (state.batch as usize, order.batches());
    assert!(next <= batches && state.version == EpochState::VERSION);
    assert_eq!(order.batch_len(batches), 0);
    for batch in [next, batches.saturating_sub(1)] {
        assert_eq!(order.batch(batch).len(), order.batch_len(batch));
        for sample in order.batch(batch).take(8) {
            assert!(sample.index < samples);
        }
    }
    let saved = EpochState::new(state.epoch, state.batch, &config, samples);
    assert_eq!(saved, state);
    let other = config.seed(state.seed ^ 1);
    assert!(state.check(&other, samples).is_err());
}

//! Saved states of epochs.

use pinlane::load::{EpochState, OrderConfig, OrderError, Sample, SampleOrder, Shard, Tail};

fn config() -> OrderConfig {
    OrderConfig::default()
        .seed(u64::MAX)
        .shuffle(true)
        .batch(4)
        .tail(Tail::Pad)
        .shard(Shard::new(1, 2).expect("a rank"))
}

#[test]
fn a_state_survives_json() {
    let state = EpochState::new(2, 3, &config(), 100);
    let json = serde_json::to_string(&state).expect("JSON");
    let fixed = r#"{"version":2,"epoch":2,"batch":3,"seed":18446744073709551615,"shuffle":true,"samples":100,"batch_size":4,"tail":"pad","rank":1,"world":2,"start":0}"#;
    assert_eq!(json, fixed);
    let back: EpochState = serde_json::from_str(fixed).expect("a state");
    assert_eq!(back, state);
    assert_eq!(back.check(&config(), 100), Ok(()));
}

#[test]
fn states_of_version_1_can_be_resumed() {
    let old = r#"{"version":1,"epoch":2,"batch":3,"seed":18446744073709551615,"shuffle":true,"samples":100,"batch_size":4,"tail":"pad","rank":1,"world":2}"#;
    let state: EpochState = serde_json::from_str(old).expect("a state");
    let (_, first) = state.remaining(&config(), 100).expect("the same order");
    assert_eq!((first, state.start), (3, 0));
}

#[test]
fn hostile_states_are_refused() {
    let json = serde_json::to_string(&EpochState::new(2, 3, &config(), 100)).expect("JSON");
    for end in 0..json.len() {
        assert!(serde_json::from_str::<EpochState>(&json[..end]).is_err());
    }
    for (good, bad) in [
        ("\"batch\":3", "\"batch\":-1"),
        ("\"batch\":3", "\"batch\":3.5"),
        ("\"batch\":3", "\"batch\":18446744073709551616"),
        ("\"batch\":3", "\"batch\":3,\"batch\":4"),
        ("\"epoch\":2,", ""),
        ("\"tail\":\"pad\"", "\"tail\":\"wag\""),
        ("\"shuffle\":true", "\"shuffle\":\"yes\""),
        ("\"version\":2", "\"version\":null"),
    ] {
        assert!(json.contains(good));
        let text = json.replace(good, bad);
        assert!(serde_json::from_str::<EpochState>(&text).is_err(), "{text}");
    }
    // Values that parse are still checked.
    for (good, bad) in [
        ("\"batch\":3", "\"batch\":18446744073709551615"),
        ("\"batch_size\":4", "\"batch_size\":0"),
        ("\"world\":2", "\"world\":0"),
        ("\"rank\":1", "\"rank\":18446744073709551615"),
        ("\"version\":2", "\"version\":0"),
        ("\"start\":0", "\"start\":101"),
    ] {
        let text = json.replace(good, bad);
        let state: EpochState = serde_json::from_str(&text).expect("of the right types");
        assert!(state.check(&config(), 100).is_err(), "{text}");
    }
}

#[test]
fn a_resumed_epoch_has_the_remaining_samples() {
    let epoch = |state: &EpochState| {
        let order = SampleOrder::new(100, state.epoch, &config()).expect("an order");
        let first = usize::try_from(state.batch).expect("small");
        let left =
            (first..order.batches()).flat_map(|batch| order.batch(batch).collect::<Vec<_>>());
        left.collect::<Vec<Sample>>()
    };
    let whole = epoch(&EpochState::new(5, 0, &config(), 100));
    for done in 0..=13 {
        let saved = EpochState::new(5, done, &config(), 100);
        let saved = serde_json::to_string(&saved).expect("JSON");
        let state: EpochState = serde_json::from_str(&saved).expect("a state");
        state.check(&config(), 100).expect("the same order");
        assert_eq!(
            epoch(&state),
            whole[4 * usize::try_from(done).expect("small")..]
        );
    }
}

#[test]
fn each_difference_is_named() {
    let saved = EpochState::new(0, 1, &config(), 100);
    let differs = |change: &dyn Fn(&mut OrderConfig), samples: usize| {
        let mut here = config();
        change(&mut here);
        match saved.check(&here, samples) {
            Err(OrderError::StateDiffers { field, saved, here }) => {
                assert_ne!(saved, here);
                field
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(differs(&|_| {}, 101), "samples");
    assert_eq!(differs(&|here| here.seed = 0, 100), "seed");
    assert_eq!(differs(&|here| here.shuffle = false, 100), "shuffle");
    assert_eq!(differs(&|here| here.tail = Tail::Keep, 100), "tail");
}

#[test]
fn versions_and_batches_are_checked() {
    let mut saved = EpochState::new(0, 13, &config(), 100);
    assert_eq!(saved.check(&config(), 100), Ok(())); // the epoch is done
    saved.batch = 14;
    let too_many = OrderError::StateBatch {
        saved: 14,
        batches: 13,
    };
    assert_eq!(saved.check(&config(), 100), Err(too_many));
    saved.version = 3;
    let newer = OrderError::StateVersion { found: 3, known: 2 };
    assert_eq!(saved.check(&config(), 100), Err(newer));
}

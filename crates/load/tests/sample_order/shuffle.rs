//! Shuffled orders are statistically uniform.

use std::collections::HashMap;

use pinlane::load::{OrderConfig, SampleOrder};

fn shuffled(samples: usize, seed: u64, epoch: u64) -> Vec<usize> {
    let config = OrderConfig::default().seed(seed).shuffle(true);
    let order = SampleOrder::new(samples, epoch, &config).expect("an order");
    (0..samples)
        .map(|position| order.sample(position).index)
        .collect()
}

/// Sum of (found - expected)² / expected over all outcomes, per degree of freedom: about 1 where
/// all are equally frequent.
fn unevenness(found: impl ExactSizeIterator<Item = u32>, drawn: u32) -> f64 {
    let outcomes = found.len() as f64;
    let expected = f64::from(drawn) / outcomes;
    let squares = found.map(|times| (f64::from(times) - expected).powi(2) / expected);
    squares.sum::<f64>() / (outcomes - 1.0)
}

/// Over seeds and over epochs.
#[test]
fn all_orders_of_few_samples_are_equally_frequent() {
    for (samples, orders) in [(2, 2), (3, 6), (4, 24), (5, 120), (6, 720)] {
        for over_epochs in [false, true] {
            let drawn = 100 * orders + 4_000;
            let mut found: HashMap<Vec<usize>, u32> = HashMap::new();
            for number in 0..u64::from(drawn) {
                let (seed, epoch) = if over_epochs {
                    (0, number)
                } else {
                    (number, 0)
                };
                *found.entry(shuffled(samples, seed, epoch)).or_default() += 1;
            }
            assert_eq!(found.len(), orders as usize, "{samples} samples");
            let uneven = unevenness(found.into_values(), drawn);
            // Chance deviates more with fewer outcomes.
            let limit = 1.0 + 5.0 * (2.0 / f64::from(orders - 1)).sqrt();
            assert!(uneven < limit, "{samples} samples: {uneven}");
        }
    }
}

/// Where a sample lands, and what comes behind it, for sizes on both sides of a power of two.
#[test]
fn positions_and_neighbours_are_uniform() {
    for samples in [16, 17, 100] {
        let mut places = vec![0; samples * samples];
        let mut neighbours = vec![0; samples * samples];
        let drawn = 40 * samples as u32;
        for seed in 0..u64::from(drawn) {
            let order = shuffled(samples, seed, 1);
            for (place, index) in order.iter().enumerate() {
                places[place * samples + index] += 1;
            }
            for pair in order.windows(2) {
                neighbours[pair[0] * samples + pair[1]] += 1;
            }
        }
        let uneven = unevenness(places.into_iter(), drawn * samples as u32);
        assert!(
            (0.8..1.2).contains(&uneven),
            "{samples} samples, places: {uneven}"
        );
        let pairs = neighbours.into_iter().enumerate();
        let unlike = pairs.filter(|(at, _)| at / samples != at % samples);
        let unlike: Vec<u32> = unlike.map(|(_, times)| times).collect();
        let uneven = unevenness(unlike.into_iter(), drawn * (samples as u32 - 1));
        assert!(
            (0.8..1.2).contains(&uneven),
            "{samples} samples, neighbours: {uneven}"
        );
    }
}

#[test]
fn epochs_and_seeds_are_independent() {
    let samples = 5_000;
    let first = shuffled(samples, 1, 0);
    for (seed, epoch) in [
        (1, 1),
        (1, 2),
        (0, 0),
        (2, 0),
        (0, 1),
        (1 << 32, 0),
        (1, u64::MAX),
    ] {
        let other = shuffled(samples, seed, epoch);
        let same = first.iter().zip(&other).filter(|(a, b)| a == b).count();
        assert!(
            same < 10,
            "seed {seed}, epoch {epoch}: {same} at the same place"
        );
    }
    let in_place = first
        .iter()
        .enumerate()
        .filter(|(place, index)| place == *index);
    assert!(in_place.count() < 10);
}

/// Neither sorted nor cut into runs: half of all steps go up, and places tell nothing of numbers.
#[test]
fn no_trend_is_left() {
    let samples = 10_000;
    for epoch in 0..4 {
        let order = shuffled(samples, 42, epoch);
        let up = order.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!(
            up.abs_diff(samples / 2) < 200,
            "epoch {epoch}: {up} steps go up"
        );
        let mean = (samples - 1) as f64 / 2.0;
        let off = |number: usize| number as f64 - mean;
        let product = |(place, index): (usize, &usize)| off(place) * off(*index);
        let square: f64 = (0..samples).map(|place| off(place).powi(2)).sum();
        let trend = order.iter().enumerate().map(product).sum::<f64>() / square;
        assert!(trend.abs() < 0.05, "epoch {epoch}: {trend}");
    }
}

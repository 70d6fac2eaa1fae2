//! Which factors normalising takes. What it computes is tested with the scenarios.

use pinlane::{Error, Normalize};

#[track_caller]
fn refused(found: Result<Normalize, Error>, expected: &str) {
    let error = found.expect_err("such factors cannot be");
    assert!(matches!(error, Error::InvalidConfig { .. }), "{error:?}");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn factors_that_cannot_be_are_refused() {
    refused(
        Normalize::new(&[], &[], 1),
        "scale: must be for 1 to 16 channels",
    );
    refused(
        Normalize::new(&[1.0; 17], &[0.0; 17], 1),
        "scale: must be for 1 to 16 channels",
    );
    refused(
        Normalize::new(&[1.0; 3], &[0.0; 2], 1),
        "offset: must have as many as scale",
    );
    refused(
        Normalize::new(&[1.0, f32::NAN], &[0.0; 2], 1),
        "scale: must be finite",
    );
    refused(
        Normalize::new(&[1.0; 2], &[0.0, f32::INFINITY], 1),
        "offset: must be finite",
    );
    refused(
        Normalize::new(&[1.0], &[0.0], 0),
        "inner: must be at least 1",
    );
}

#[test]
fn means_and_deviations_that_cannot_be_are_refused() {
    refused(
        Normalize::mean_std(&[], &[], 1),
        "mean: must be for 1 to 16 channels",
    );
    refused(
        Normalize::mean_std(&[0.5; 3], &[0.5; 4], 1),
        "std: must have as many as mean",
    );
    refused(
        Normalize::mean_std(&[f32::NAN], &[1.0], 1),
        "mean: must be finite",
    );
    refused(
        Normalize::mean_std(&[0.5], &[f32::INFINITY], 1),
        "std: must be finite",
    );
    refused(
        Normalize::mean_std(&[0.5; 2], &[0.5, 0.0], 1),
        "std: must not be 0",
    );
    refused(
        Normalize::mean_std(&[0.5], &[1e-44], 1),
        "std: must not be that close to 0",
    );
    refused(
        Normalize::mean_std(&[0.5], &[0.5], 0),
        "inner: must be at least 1",
    );
}

#[test]
fn the_most_channels_are_taken() {
    let many = Normalize::new(&[1.0; 16], &[0.0; 16], usize::MAX).expect("sixteen will do");
    assert_eq!((many.channels(), many.inner()), (16, usize::MAX));
}

/// Against the formula as it is written, in `f64`.
#[test]
fn mean_and_deviation_become_scale_and_offset() {
    let (mean, std) = ([0.485, 0.456, 0.406, 0.0], [0.229, 0.224, 0.225, 1.0]);
    let normalize = Normalize::mean_std(&mean, &std, 50).expect("the usual ones");
    for (channel, [scale, offset]) in normalize.factors().iter().enumerate() {
        let (mean, std) = (f64::from(mean[channel]), f64::from(std[channel]));
        for x in 0..=255 {
            let found = f64::from(*scale) * f64::from(x) + f64::from(*offset);
            let expected = (f64::from(x) / 255.0 - mean) / std;
            assert!((found - expected).abs() < 1e-6, "{x} of {channel}");
        }
    }
}

//! Device transforms of fields.

use half::bf16;
use pinlane::Normalize;
use pinlane::load::{DeviceTransform, Dtype, OnError};

use super::support::{IMAGE, Made, Rig, TEXT, Trouble, config};

fn scaled(bytes: &[u8], scale: f32, offset: f32) -> Vec<f32> {
    bytes
        .iter()
        .map(|&byte| f32::from(byte) * scale + offset)
        .collect()
}

#[test]
fn bytes_become_numbers() {
    let trouble = Trouble {
        fail: [1, 5].into(),
        ..Trouble::default()
    };
    for workers in [0, 3] {
        let rig = Rig::new();
        let step = |name: &str, scale, offset| {
            let finish = DeviceTransform::U8ToF32 { scale, offset };
            (name.to_owned(), finish)
        };
        let config = config(4, workers)
            .device_transforms(vec![
                step("text", 0.5, 3.0),
                step("image", 2.0 / 255.0, -1.0),
            ])
            .on_error(OnError::Skip);
        let loader = rig.loader(Made::with(18, trouble.clone()), config);
        let mut seen = 0;
        for batch in loader.epoch(0).expect("no epoch is running") {
            let batch = batch.expect("no error");
            let samples: Vec<_> = batch.indices().iter().map(|&i| Made::sample(i)).collect();
            let all =
                |at: usize| -> Vec<u8> { samples.iter().flat_map(|s| s[at].clone()).collect() };
            let image = batch.field("image").expect("a field");
            assert_eq!(image.dtype(), Dtype::F32);
            assert_eq!(image.shape(), [batch.len(), 3, 4]);
            let found = rig.stream.copy_to_vec(image.typed::<f32>().expect("f32"));
            let expected = scaled(&all(IMAGE), 2.0 / 255.0, -1.0);
            assert_eq!(found.expect("the device is alive"), expected);
            let text = batch.field("text").expect("a field");
            let found = rig.stream.copy_to_vec(text.typed::<f32>().expect("f32"));
            assert_eq!(
                found.expect("the device is alive"),
                scaled(&all(TEXT), 0.5, 3.0)
            );
            assert_eq!(text.shape(), [all(TEXT).len()]);
            assert!(
                text.offsets()
                    .is_some_and(|offsets| offsets.len() == batch.len() + 1)
            );
            let label = batch.field("label").expect("a field");
            assert_eq!(label.dtype(), Dtype::U32);
            seen += batch.len();
        }
        assert_eq!(seen, 16);
        drop(loader);
        rig.assert_clean();
    }
}

/// As the documentation says, on the CPU.
fn normalized(bytes: &[u8], normalize: &Normalize) -> Vec<f32> {
    let channel = |at: usize| normalize.factors()[at / normalize.inner() % normalize.channels()];
    let number = |(at, &byte): (usize, &u8)| {
        let [scale, offset] = channel(at);
        f32::from(byte) * scale + offset
    };
    bytes.iter().enumerate().map(number).collect()
}

#[test]
fn normalized_channels_match_bit_for_bit() {
    let (mean, std) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    let (planes, pixels) = (4, 1);
    let trouble = Trouble {
        fail: [2, 3, 11].into(),
        ..Trouble::default()
    };
    for (inner, workers) in [(planes, 0), (pixels, 0), (planes, 3), (pixels, 2)] {
        let image = Normalize::mean_std(&mean, &std, inner).expect("the usual ones");
        let text = Normalize::new(&[0.1], &[-7.3], 1).expect("one channel");
        let rig = Rig::new();
        let step = |name: &str, normalize: &Normalize, to| {
            let normalize = normalize.clone();
            (
                name.to_owned(),
                DeviceTransform::Normalize { normalize, to },
            )
        };
        for to in [Dtype::F32, Dtype::Bf16] {
            let config = config(4, workers)
                .device_transforms(vec![step("image", &image, to), step("text", &text, to)])
                .on_error(OnError::Skip);
            let loader = rig.loader(Made::with(18, trouble.clone()), config);
            let mut seen = 0;
            for batch in loader.epoch(0).expect("no epoch is running") {
                let batch = batch.expect("no error");
                let samples: Vec<_> = batch.indices().iter().map(|&i| Made::sample(i)).collect();
                for (name, at, normalize) in [("image", IMAGE, &image), ("text", TEXT, &text)] {
                    let bytes: Vec<u8> = samples.iter().flat_map(|s| s[at].clone()).collect();
                    let expected = normalized(&bytes, normalize);
                    let field = batch.field(name).expect("a field");
                    assert_eq!(field.dtype(), to);
                    let found = rig.stream.copy_to_vec(field.bytes());
                    let found = found.expect("the device is alive");
                    let expected: Vec<u8> = match to {
                        Dtype::F32 => expected.iter().flat_map(|x| x.to_le_bytes()).collect(),
                        _ => {
                            let half = |x: &f32| bf16::from_f32(*x).to_le_bytes();
                            expected.iter().flat_map(half).collect()
                        }
                    };
                    assert_eq!(found, expected, "{name}, {inner} in a row, {to}");
                }
                seen += batch.len();
            }
            assert_eq!(seen, 15);
        }
        rig.assert_clean();
    }
}

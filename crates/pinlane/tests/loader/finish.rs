//! What the device makes of fields.

use pinlane::load::{Dtype, Finish, LoaderConfig, OnError};

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
            let finish = Finish::U8ToF32 { scale, offset };
            (name.to_owned(), finish)
        };
        let config = LoaderConfig {
            finish: vec![step("text", 0.5, 3.0), step("image", 2.0 / 255.0, -1.0)],
            on_error: OnError::Skip,
            ..config(4, workers)
        };
        let loader = rig.loader(Made::with(18, trouble.clone()), config);
        let mut seen = 0;
        for batch in loader.epoch(0).expect("none is under way") {
            let batch = batch.expect("no fault");
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

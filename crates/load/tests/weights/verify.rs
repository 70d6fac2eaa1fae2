//! Verifying loaded tensors against their files.

use std::fs;
use std::os::unix::fs::FileExt;

use pinlane::load::{Dtype, LoadErrorKind, Weights};

use super::rig::{Rig, config, file, model, set_old};
use super::support::Scratch;

#[test]
fn the_first_different_byte_is_reported() {
    for (to, element_bytes, to_bytes) in [(None, 8, 8), (Some(Dtype::F32), 8, 4)] {
        let scratch = Scratch::new();
        let rig = Rig::new();
        let path = model(&scratch);
        let weights = Weights::open(&path).expect("a good file");
        let mut config = config(2);
        config.convert = to;
        let tensors = rig.load(&weights, &config);
        for tensor in tensors.iter() {
            weights.verify(&rig.device, tensor).expect("the same");
        }
        // Changes sign and exponent of one number without changing the file's stamp.
        let (element, deep) = (1234, &tensors["deep"]);
        let before = rig.stream.copy_to_vec(deep.bytes()).expect("alive");
        let opened = fs::File::options()
            .write(true)
            .open(&path)
            .expect("the file");
        let at = deep.info().bytes().start + element * element_bytes;
        let number = [&[0; 6][..], &[0xf0, 0x3f]].concat(); // 1.0
        opened.write_all_at(&number, at).expect("our own file");
        set_old(&path);
        let error = weights.verify(&rig.device, deep).expect_err("not the same");
        assert_eq!(error.file(), Some(path.as_path()));
        assert_eq!(error.tensor(), Some("deep"));
        let LoadErrorKind::Mismatch {
            at,
            found,
            expected,
        } = error.kind()
        else {
            panic!("{error}");
        };
        let (start, end) = (element * to_bytes, (element + 1) * to_bytes);
        assert!((start..end).contains(at), "{error}");
        assert_eq!(*found, before[*at as usize]);
        assert_ne!(found, expected);
        weights
            .verify(&rig.device, &tensors["h.0.w"])
            .expect("another tensor");
        drop(tensors);
        rig.assert_clean();
    }
}

#[test]
fn tensors_of_other_weights_are_refused() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let tensors = rig.load(&weights, &config(1));
    let other = file(&scratch, "other.safetensors", &[("w", Dtype::U8, &[9])], 1);
    let other = Weights::open(other).expect("a good file");
    let error = other
        .verify(&rig.device, &tensors["deep"])
        .expect_err("not its own");
    assert_eq!(error.kind(), &LoadErrorKind::OtherCatalog);
    assert_eq!(error.tensor(), Some("deep"));
    drop(tensors);
    rig.assert_clean();
}

#[test]
fn a_changed_file_cannot_be_verified() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let path = model(&scratch);
    let weights = Weights::open(&path).expect("a good file");
    let tensors = rig.load(&weights, &config(2));
    let mut bytes = fs::read(&path).expect("the file");
    bytes.push(0);
    fs::write(&path, bytes).expect("our own file");
    let error = weights
        .verify(&rig.device, &tensors["odd"])
        .expect_err("changed");
    assert_eq!(error.kind(), &LoadErrorKind::FileChanged);
    assert_eq!(error.file(), Some(path.as_path()));
    fs::remove_file(&path).expect("our own file");
    let error = weights
        .verify(&rig.device, &tensors["odd"])
        .expect_err("gone");
    assert!(
        matches!(error.kind(), LoadErrorKind::Io { action: "open", .. }),
        "{error}"
    );
    drop(tensors);
    rig.assert_clean();
}

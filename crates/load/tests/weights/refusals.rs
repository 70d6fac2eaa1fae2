//! Settings that are not possible.

use pinlane::load::{Dtype, LoadConfig, LoadErrorKind, Weights};

use super::rig::{Rig, config, converting, model};
use super::support::Scratch;

#[test]
fn each_is_named() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let refused = |config: &LoadConfig| {
        let started = weights.start(&rig.device, config);
        started.expect_err("not possible").kind().clone()
    };
    for piece_bytes in [
        0,
        1,
        4096,
        12288,
        16383,
        16385,
        20_000,
        (1 << 30) + 4096,
        usize::MAX,
    ] {
        let mut config = config(1);
        config.piece_bytes = Some(piece_bytes);
        let fault = refused(&config);
        let named = matches!(
            fault,
            LoadErrorKind::InvalidConfig {
                field: "piece_bytes",
                ..
            }
        );
        assert!(named, "{piece_bytes}: {fault}");
    }
    for pinned_bytes in [0, 4096, 32_767] {
        let fault = refused(&config(1).pinned_bytes(pinned_bytes));
        let named = matches!(
            fault,
            LoadErrorKind::InvalidConfig {
                field: "pinned_bytes",
                ..
            }
        );
        assert!(named, "{pinned_bytes}: {fault}");
    }
    let fault = refused(&config(0));
    assert!(
        matches!(
            fault,
            LoadErrorKind::InvalidConfig {
                field: "threads",
                ..
            }
        ),
        "{fault}"
    );
    for dtype in Dtype::ALL {
        if [Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64].contains(&dtype) {
            continue;
        }
        let fault = refused(&converting(config(1), dtype));
        assert_eq!(fault, LoadErrorKind::NotAFloat { to: dtype });
        assert!(fault.to_string().contains("choose F16"), "{fault}");
    }
    rig.assert_clean();
}

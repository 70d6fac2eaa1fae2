//! Invalid settings.

use pinlane::load::{Dtype, LoadConfig, LoadErrorKind, Weights};

use super::rig::{Rig, config, model};
use super::support::Scratch;

#[test]
fn errors_name_the_setting() {
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
        let kind = refused(&config);
        let named = matches!(
            kind,
            LoadErrorKind::InvalidConfig {
                field: "piece_bytes",
                ..
            }
        );
        assert!(named, "{piece_bytes}: {kind}");
    }
    for pinned_bytes in [0, 4096, 32_767] {
        let kind = refused(&config(1).pinned_bytes(pinned_bytes));
        let named = matches!(
            kind,
            LoadErrorKind::InvalidConfig {
                field: "pinned_bytes",
                ..
            }
        );
        assert!(named, "{pinned_bytes}: {kind}");
    }
    let kind = refused(&config(0));
    assert!(
        matches!(
            kind,
            LoadErrorKind::InvalidConfig {
                field: "threads",
                ..
            }
        ),
        "{kind}"
    );
    for dtype in Dtype::ALL {
        if [Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64].contains(&dtype) {
            continue;
        }
        let kind = refused(&config(1).convert(dtype));
        assert_eq!(kind, LoadErrorKind::NotAFloat { to: dtype });
        assert!(kind.to_string().contains("choose F16"), "{kind}");
    }
    rig.assert_clean();
}

//! `pinlane feed`: shards, and sample bytes as a part of the moved bytes.

#[path = "support/feed.rs"]
mod feed;
mod support;

use feed::{data, feed, report};
use serde_json::Value;
use support::{pinlane, stderr, stdout, unwrapped};

/// A few bytes per sample.
const SMALL: [&str; 5] = ["synthetic", "--shape", "3x8x8", "--samples", "100"];

#[test]
fn ranks_share_the_samples() {
    for (rank, samples) in [(0, 34), (1, 34), (2, 34)] {
        let shard = format!("{rank}/3");
        let found = report(&[&SMALL[..], &["--shard", &shard]].concat());
        assert_eq!(found["samples"], samples);
        let shard = serde_json::json!({
            "rank": rank,
            "world": 3,
            "from": ["--shard"],
            "padding_samples": 2,
        });
        assert_eq!(found["shard"], shard);
    }
    let args = ["--json", "--device", "sim", "feed"];
    let output = pinlane(&[&args[..], &SMALL].concat())
        .env("RANK", "1")
        .env("WORLD_SIZE", "4")
        .output()
        .expect("pinlane starts");
    let found: Value = serde_json::from_str(stdout(&output)).expect("valid JSON");
    assert_eq!(found["samples"], 25);
    let shard = serde_json::json!({
        "rank": 1, "world": 4, "from": ["RANK", "WORLD_SIZE"], "padding_samples": 0
    });
    assert_eq!(found["shard"], shard);
}

#[test]
fn slurm_variables_count_only_in_a_step() {
    let args = [&["--device", "sim", "feed"], &SMALL[..]].concat();
    let text = |step: Option<&str>| {
        let mut tool = pinlane(&args);
        tool.env("SLURM_PROCID", "1").env("SLURM_NTASKS", "3");
        if let Some(step) = step {
            tool.env("SLURM_STEP_ID", step);
        }
        let output = tool.output().expect("pinlane starts");
        assert!(output.status.success(), "{}", stderr(&output));
        unwrapped(&output)
    };
    let in_a_step = text(Some("0"));
    for part in [
        " Rank 1 of 3, from SLURM_PROCID and SLURM_NTASKS; 2 samples per epoch repeated, ",
        " 34 samples in 1 batch, ",
    ] {
        assert!(in_a_step.contains(part), "{in_a_step}");
    }
    assert!(!in_a_step.contains("are ignored"), "{in_a_step}");
    let alone = text(None);
    for part in [
        " 100 samples in 1 batch, ",
        "SLURM_STEP_ID",
        "are ignored",
        "--shard RANK/WORLD",
    ] {
        assert!(alone.contains(part), "{alone}");
    }
    assert!(!alone.contains("Rank"), "{alone}");
}

#[test]
fn sample_bytes_are_counted_apart_from_moved_bytes() {
    // Rows of u8 5x4x3 and of one i64.
    let found = report(&[&data("npy/image.npy"), &data("npy/label.npy")]);
    let a_sample = found["fields"][0]["bytes"].as_u64().expect("a number") + 8;
    assert_eq!(found["sample_bytes"], 7 * a_sample);
    let number = |field: &str| found[field].as_f64().expect("a number");
    assert!(number("moved_bytes") > number("sample_bytes"), "{found}");
    let ratio = number("moved_gb_per_s") / number("sample_gb_per_s");
    let bytes = number("moved_bytes") / number("sample_bytes");
    assert!((ratio - bytes).abs() < 1e-9, "{found}");
    // Images of 700, 512, 513 and 5 bytes.
    let args = [&data("tar/gnu-ustar.tar"), "--field", "jpg=u8:..1000"];
    let found = report(&args);
    assert_eq!(
        (&found["samples"], &found["sample_batches"]),
        (&4.into(), &1.into())
    );
    assert_eq!(found["sample_bytes"], 700 + 512 + 513 + 5);
    let output = feed(&args);
    let text = stdout(&output);
    assert!(
        text.contains(" GB/s moved") || text.contains(" MB/s moved"),
        "{text}"
    );
    assert!(text.contains("1.69 KiB of samples, "), "{text}");
    // The same number, even if the device converts them.
    let found = report(&[&args[..], &["--normalize", "0.5/0.5"]].concat());
    assert_eq!(found["sample_bytes"], 1730);
}

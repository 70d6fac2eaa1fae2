//! `pinlane feed`: which samples are for this process, and what of the bytes that move is samples.

#[path = "support/feeding.rs"]
mod feeding;
mod support;

use feeding::{data, feed, report};
use serde_json::Value;
use support::{pinlane, stderr, stdout};

/// A few bytes a sample.
const SMALL: [&str; 5] = ["synthetic", "--shape", "3x8x8", "--samples", "100"];

#[test]
fn ranks_share_the_samples() {
    for (rank, samples) in [("0", 34), ("1", 34), ("2", 34)] {
        let found = report(&[&SMALL[..], &["--rank", rank, "--world", "3"]].concat());
        assert_eq!(found["samples"], samples);
        let shard = serde_json::json!({
            "rank": rank.parse::<u64>().expect("a number"),
            "world": 3,
            "from": ["--rank", "--world"],
            "padding_samples": 2,
        });
        assert_eq!(found["shard"], shard);
    }
    let words = ["--json", "--device", "sim", "feed"];
    let output = pinlane(&[&words[..], &SMALL].concat())
        .env("RANK", "1")
        .env("WORLD_SIZE", "4")
        .output()
        .expect("the tool starts");
    let found: Value = serde_json::from_str(stdout(&output)).expect("valid JSON");
    assert_eq!(found["samples"], 25);
    let shard = serde_json::json!({
        "rank": 1, "world": 4, "from": ["RANK", "WORLD_SIZE"], "padding_samples": 0
    });
    assert_eq!(found["shard"], shard);
}

#[test]
fn variables_of_slurm_count_in_a_step_alone() {
    let words = [&["--device", "sim", "feed"], &SMALL[..]].concat();
    let text = |step: Option<&str>| {
        let mut tool = pinlane(&words);
        tool.env("SLURM_PROCID", "1").env("SLURM_NTASKS", "3");
        if let Some(step) = step {
            tool.env("SLURM_STEP_ID", step);
        }
        let output = tool.output().expect("the tool starts");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output).to_owned()
    };
    let in_a_step = text(Some("0"));
    for part in [
        "\nRank 1 of 3, from SLURM_PROCID and SLURM_NTASKS; 2 samples per epoch repeated, ",
        "\n34 samples in 1 batch, ",
    ] {
        assert!(in_a_step.contains(part), "{in_a_step}");
    }
    assert!(!in_a_step.contains("not heeded"), "{in_a_step}");
    let alone = text(None);
    for part in [
        "\n100 samples in 1 batch, ",
        "SLURM_STEP_ID",
        "not heeded",
        "--world",
    ] {
        assert!(alone.contains(part), "{alone}");
    }
    assert!(!alone.contains("Rank"), "{alone}");
}

#[test]
fn bytes_of_samples_are_told_apart_from_what_is_moved() {
    // Rows of u8 5x4x3 and of one i64.
    let found = report(&[&data("npy/image.npy"), &data("npy/label.npy")]);
    let a_sample = found["fields"][0]["bytes"].as_u64().expect("a number") + 8;
    assert_eq!(found["sample_bytes"], 7 * a_sample);
    let number = |field: &str| found[field].as_f64().expect("a number");
    assert!(number("moved_bytes") > number("sample_bytes"), "{found}");
    let ratio = number("moved_gb_per_s") / number("sample_gb_per_s");
    let bytes = number("moved_bytes") / number("sample_bytes");
    assert!((ratio - bytes).abs() < 1e-9, "{found}");
    // Pictures of 700, 512, 513 and 5 bytes.
    let words = [&data("tar/gnu-ustar.tar"), "--field", "jpg=u8:..1000"];
    let found = report(&words);
    assert_eq!(
        (&found["samples"], &found["sample_batches"]),
        (&4.into(), &1.into())
    );
    assert_eq!(found["sample_bytes"], 700 + 512 + 513 + 5);
    let output = feed(&words);
    let text = stdout(&output);
    assert!(
        text.contains(" GB/s moved") || text.contains(" MB/s moved"),
        "{text}"
    );
    assert!(text.contains("1.69 KiB of samples, "), "{text}");
    // As many, whatever the device makes of them.
    let found = report(&[&words[..], &["--normalize", "0.5/0.5"]].concat());
    assert_eq!(found["sample_bytes"], 1730);
}

//! The rendered load, byte for byte.

use pinlane_report::{
    Environment, Load, LoadConversion, LoadCopies, LoadHost, LoadJob, LoadLimitedBy, LoadList,
    LoadListTensor, LoadLocalRank, LoadMemory, LoadRun, LoadShard, LoadSharing, LoadTimes,
    LoadVerify, Origin,
};
use serde_json::Value;

const MIB: u64 = 1 << 20;

const RUNS: &str = "\
Weights to the GPU
Measured on NVIDIA H200
288 tensors in 2 files: 13 GiB; rows of rank 1 of 4; loaded 4 times

run                     time          rate    page cache        direct
1                     400 ms     34.9 GB/s        13 GiB           0 B
2                     260 ms     53.7 GB/s        13 GiB           0 B
3                     250 ms     55.8 GB/s        12 GiB         1 GiB
4                     270 ms     51.7 GB/s        13 GiB           0 B
2 to 4, median        260 ms     53.7 GB/s
From open until all tensors are ready: headers 2.00 ms, allocation and loading 258 ms. GB is 10^9 bytes.

Limit: the link; 14 threads waited for copies to the device for 60% of their time.
Memory: 13 GiB on the device, 168 MiB pinned.
Converted to BF16: 280 tensors; 6 already had this type; 2 of other types left unchanged.
Verified: 288 tensors read back, all bytes match the files after conversion to BF16.
";

fn job() -> LoadJob {
    LoadJob {
        files: 2,
        tensors: 288,
        bytes: 13 << 30,
        shard: None,
        repeat: 1,
        verify: false,
    }
}

/// A run of `total_ms`, with `direct_mib` read directly.
fn times(total_ms: u64, direct_mib: u64, limit: LoadLimitedBy) -> LoadTimes {
    let total_ns = total_ms * 1_000_000;
    LoadTimes {
        headers_ns: 2_000_000,
        context_ns: 0,
        load_ns: total_ns - 2_000_000,
        total_ns,
        gb_per_s: job().bytes as f64 / total_ns as f64,
        threads: 14,
        page_cache_bytes: job().bytes - direct_mib * MIB,
        direct_bytes: direct_mib * MIB,
        reading_ns: 300,
        blocked_ns: 240,
        converting_ns: 100,
        waiting_ns: 600,
        limit,
    }
}

fn run(times: LoadTimes) -> LoadRun {
    LoadRun {
        times: Some(times),
        simulated_copies: None,
        host: None,
        local_rank: None,
    }
}

fn measured(runs: impl IntoIterator<Item = LoadTimes>) -> Load {
    let mut report = Load::new(Origin::new("NVIDIA H200", None), job());
    runs.into_iter().for_each(|times| report.push(run(times)));
    report.complete = true;
    report
}

fn simulated(copies: Option<LoadCopies>) -> Load {
    let mut report = Load::new(Origin::new("GPU", Some("h200".into())), job());
    report.push(LoadRun {
        times: None,
        simulated_copies: copies,
        host: Some(LoadHost {
            headers_ns: 2_000_000,
            threads: 3,
            reading_ns: 40_000_000,
            converting_ns: 0,
            page_cache_bytes: 12 * MIB,
            direct_bytes: MIB,
        }),
        local_rank: None,
    });
    report.complete = true;
    report
}

fn json(report: &Load) -> Value {
    serde_json::from_str(&report.to_json(&Environment::default())).expect("valid JSON")
}

#[test]
fn several_runs_with_all_details() {
    let link = LoadLimitedBy::Link;
    let mut report = measured([
        times(400, 0, link),
        times(260, 0, link),
        times(250, 1024, link),
        times(270, 0, link),
    ]);
    report.job.shard = Some(LoadShard { rank: 1, world: 4 });
    report.memory = Some(LoadMemory {
        pinned_bytes: Some(168 * MIB),
        device_bytes: 13 << 30,
    });
    report.conversion = Some(LoadConversion {
        to: "BF16".to_owned(),
        converted: 280,
        already: 6,
        left: 2,
    });
    report.verify = Some(LoadVerify {
        tensors: 288,
        failure: None,
    });
    assert_eq!(report.to_text(), RUNS);
    let json = json(&report);
    assert_eq!(json["schema"], 1);
    assert_eq!(json["origin"], "MEASURED");
    assert_eq!(json["median_of_later"]["total_ns"], 260_000_000);
    assert_eq!(json["median_of_later"]["runs"], 3);
    assert_eq!(json["runs"][2]["times"]["direct_bytes"], 1024 * MIB);
    assert_eq!(json["runs"][0]["times"]["limit"], "link");
}

#[test]
fn ranks_of_one_machine_are_told_how_they_share() {
    for (sharing, name, words) in [
        (
            LoadSharing::PageCache,
            "page_cache",
            "the disk is read once",
        ),
        (
            LoadSharing::NoRoom,
            "no_room",
            "half of the available memory",
        ),
        (LoadSharing::OwnRows, "own_rows", "its own rows"),
        (LoadSharing::Direct, "direct", "bypassing the page cache"),
    ] {
        let mut report = measured([times(400, 0, LoadLimitedBy::Disk)]);
        report.runs[0].local_rank = Some(LoadLocalRank {
            rank: 1,
            world: 4,
            sharing,
        });
        let text = report.to_text();
        let line = text.lines().find(|line| line.starts_with("Rank 1 of 4"));
        assert!(line.is_some_and(|line| line.contains(words)), "{text}");
        let ranks = &json(&report)["runs"][0]["local_rank"];
        assert_eq!((&ranks["rank"], &ranks["world"]), (&1.into(), &4.into()));
        assert_eq!(ranks["sharing"], name);
    }
    let alone = measured([times(400, 0, LoadLimitedBy::Disk)]);
    assert!(!alone.to_text().contains("Rank"), "{}", alone.to_text());
}

#[test]
fn one_run_has_no_median_and_two_have_the_later_one() {
    let one = measured([times(400, 0, LoadLimitedBy::Link)]);
    assert_eq!(one.median_of_later, None);
    assert!(!one.to_text().contains("median"), "{}", one.to_text());
    assert!(one.to_text().contains("allocation and loading 398 ms"));
    let two = measured([
        times(400, 0, LoadLimitedBy::Link),
        times(300, 0, LoadLimitedBy::Link),
    ]);
    assert!(two.to_text().contains("\nlater                 300 ms"));
    assert_eq!(two.median_of_later.map(|it| it.total_ns), Some(300_000_000));
}

#[test]
fn context_creation_is_reported_separately() {
    let mut first = times(400, 0, LoadLimitedBy::Link);
    (first.context_ns, first.load_ns) = (135_000_000, 263_000_000);
    let text = measured([first]).to_text();
    let must = "headers 2.00 ms, context creation 135 ms, allocation and loading 263 ms. GB is 10^9 bytes.\n\
                Excluding one-time context creation: 52.7 GB/s.\n\nLimit: ";
    assert!(text.contains(must), "{text}");
    let later = times(260, 0, LoadLimitedBy::Link);
    assert!(!measured([first, later]).to_text().contains("context"));
}

#[test]
fn every_limit_is_a_sentence_with_its_figure() {
    let limit = |times: LoadTimes| {
        let text = measured([times]).to_text();
        let line = text.lines().find(|line| line.starts_with("Limit: "));
        line.expect("a limit").to_owned()
    };
    assert_eq!(
        limit(times(400, 2048, LoadLimitedBy::Disk)),
        "Limit: the disk; 14 threads waited for it for 24% of their time; 2 GiB read directly."
    );
    assert_eq!(
        limit(times(400, 0, LoadLimitedBy::Cpu)),
        "Limit: the CPU; 14 threads copied from the page cache for 30% of their time."
    );
    let mut converting = times(400, 0, LoadLimitedBy::Cpu);
    (converting.converting_ns, converting.threads) = (9100, 1);
    assert_eq!(
        limit(converting),
        "Limit: the CPU; 1 thread converted for 91% of its time."
    );
}

#[test]
fn a_simulated_device_shows_simulated_time_alone() {
    let copies = LoadCopies {
        count: 4,
        bytes: 12 * MIB,
        ns: 1_048_576,
    };
    let text = simulated(Some(copies)).to_text();
    assert!(text.contains("\nSIMULATED: sim:h200, not a real GPU\n"));
    let lines = "
run                     time          rate        copied        copies
1                    1.05 ms     12.0 GB/s        12 MiB             4
SIMULATED time of the copies only; reading files takes no simulated time, so no limit is reported. GB is 10^9 bytes.

Host, real time: headers 2.00 ms, reading 40.0 ms.
Host: 3 threads read 12 MiB through the page cache, 1 MiB direct.
";
    assert!(text.contains(lines), "{text}");
    assert!(!text.contains("Limit: "), "{text}");
    let none = LoadCopies {
        count: 0,
        bytes: 0,
        ns: 0,
    };
    for (copies, says) in [
        (None, "not measured\n"),
        (
            Some(LoadCopies { ns: 0, ..copies }),
            "0 ns             –        12 MiB",
        ),
        (Some(none), "0 B             0\n"),
    ] {
        let text = simulated(copies).to_text();
        assert!(text.contains(says), "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
    assert!(json(&simulated(Some(copies)))["runs"][0]["times"].is_null());
}

#[test]
fn every_run_on_a_simulated_device_is_reported() {
    let copies = LoadCopies {
        count: 1,
        bytes: MIB,
        ns: 1_000_000,
    };
    let mut report = simulated(Some(copies));
    let mut again = report.runs[0];
    again.simulated_copies = Some(LoadCopies {
        ns: 2_000_000,
        ..copies
    });
    report.push(again);
    let text = report.to_text();
    assert!(text.contains("; loaded 2 times\n"), "{text}");
    assert!(
        text.contains("\n1                    1.00 ms     1.05 GB/s"),
        "{text}"
    );
    assert!(
        text.contains("\n2                    2.00 ms     0.52 GB/s"),
        "{text}"
    );
    assert_eq!(json(&report)["runs"][1]["host"]["reading_ns"], 40_000_000);
}

#[test]
fn interruptions_and_mismatches_are_reported() {
    let mut report = Load::new(Origin::new("NVIDIA H200", None), job());
    let text = report.to_text();
    assert!(text.ends_with("\nNothing was loaded.\nINTERRUPTED: 0 of 1 run done.\n"));
    report.push(run(times(400, 0, LoadLimitedBy::Link)));
    report.verify = Some(LoadVerify {
        tensors: 3,
        failure: Some("a.safetensors: tensor \"w\": byte 7\u{1b}[2J".to_owned()),
    });
    let text = report.to_text();
    let line = "\nNOT VERIFIED: a.safetensors: tensor \"w\": byte 7 [2J\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn an_interrupted_load_reports_its_target() {
    let mut report = measured([times(400, 0, LoadLimitedBy::Link); 3]);
    report.complete = false;
    (report.job.repeat, report.job.verify) = (10, true);
    let text = report.to_text();
    assert!(text.contains("; loaded 3 of 10 times\n"), "{text}");
    let end = "\nNot verified: interrupted.\nINTERRUPTED: 3 of 10 runs done.\n";
    assert!(text.ends_with(end), "{text}");
    let found = json(&report);
    assert_eq!(found["job"]["repeat"], 10);
    assert_eq!(found["job"]["verify"], true);
    // Later, while they are compared.
    report.job.repeat = 3;
    report.verify = Some(LoadVerify {
        tensors: 12,
        failure: None,
    });
    let text = report.to_text();
    assert!(text.contains("; loaded 3 times\n"), "{text}");
    let end =
        "\nVerified: 12 of 288 tensors read back, all bytes match the files; then INTERRUPTED.\n";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn a_list_has_aligned_columns_for_any_names() {
    let tensor = |name: &str, shape: &[u64], bytes| LoadListTensor {
        name: name.to_owned(),
        dtype: "F16".to_owned(),
        shape: shape.to_vec(),
        bytes,
        converted: None,
        file: "a.safetensors".to_owned(),
    };
    let tensors = vec![
        tensor("lm_head", &[3, 5], 30),
        tensor("漢字\u{202e}\n", &[], 2),
    ];
    let list = LoadList::new(1, 1, tensors);
    let text = "\
name     dtype  shape   bytes  file
lm_head  F16    [3, 5]     30  a.safetensors
漢字     F16    []          2  a.safetensors
2 tensors in 1 file: 32 B
Not loaded: 1 tensor in the files that their index does not list.
";
    assert_eq!(list.to_text(), text);
    let json: Value =
        serde_json::from_str(&list.to_json(&Environment::default())).expect("valid JSON");
    assert_eq!(json["schema"], 1);
    assert_eq!(json["bytes"], 32);
    assert_eq!(json["tensors"][0]["shape"], serde_json::json!([3, 5]));
    let nothing = LoadList::new(0, 0, Vec::new());
    assert_eq!(nothing.to_text(), "0 tensors in 0 files: 0 B\n");
}

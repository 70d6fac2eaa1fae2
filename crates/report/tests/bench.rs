//! Sweeps: text, CSV, parsing, comparison.

use pinlane_report::{
    Bench, BenchComparison, BenchReadError, BenchVerdict, CopyStats, Environment, MemoryKind,
    Origin, Route,
};

const KIB: u64 = 1024;

fn figure(bytes: u64, times_ns: &[u64]) -> CopyStats {
    CopyStats::from_times(bytes, times_ns).expect("time passed")
}

/// Times around a middle one, half a percent each way.
fn quiet(ns: u64) -> [u64; 3] {
    [ns - ns / 200, ns, ns + ns / 200]
}

fn sweep(device: &str, ns: u64) -> Bench {
    let origin = Origin::new(device, None);
    let began = Some("2026-11-15 10:20:35 UTC".to_owned());
    let mut bench = Bench::new(origin, began, 7, 50_000_000);
    bench.push(
        MemoryKind::Pinned,
        Route::Both,
        64 * KIB,
        figure(128 * KIB, &quiet(2 * ns)),
    );
    bench.push(
        MemoryKind::Pinned,
        Route::H2d,
        64 * KIB,
        figure(64 * KIB, &quiet(ns)),
    );
    bench.push(
        MemoryKind::Pinned,
        Route::H2d,
        4 * KIB,
        figure(4 * KIB, &[2_000, 4_000, 9_000]),
    );
    bench.push(
        MemoryKind::Pageable,
        Route::H2d,
        64 * KIB,
        figure(64 * KIB, &quiet(22_000)),
    );
    bench.push_latency(MemoryKind::Pinned, Route::H2d, 1, figure(1, &quiet(3_200)));
    bench.push_latency(
        MemoryKind::Pageable,
        Route::H2d,
        1,
        figure(1, &quiet(6_400)),
    );
    bench.complete = true;
    bench
        .notes
        .push("mapped: not measured: no such thing".to_owned());
    bench
}

#[test]
fn tables_by_direction_with_spread_and_noise() {
    let must = "\
Bandwidth
Measured on NVIDIA H200

Host to device, GB/s
size             pageable     pinned
4 KiB                   -  1.0 ±79%!
64 KiB            3.0 ±0%   12.0 ±0%

Both ways at once, GB/s
size               pinned
64 KiB           12.0 ±0%

Latency: a copy of 1 B
direction        pageable     pinned
host to device    6.40 µs    3.20 µs

Median of 3 to 3 copies; ±: half the distance from the 5th to the 95th percentile;
!: noisy. GB is 10^9 bytes; both ways counts the bytes of both directions.
1 of 4 figures are noisy: their times vary by more than a quarter of the median. Close other
programs, or allow more --time.
mapped: not measured: no such thing.
";
    assert_eq!(sweep("NVIDIA H200", 5_461).to_text(), must);
}

#[test]
fn cells_stay_apart_and_show_a_digit_for_extreme_figures() {
    let mut bench = Bench::new(Origin::new("NVIDIA H200", None), None, 7, 1);
    for memory in [MemoryKind::Pinned, MemoryKind::Registered] {
        // 109 GB/s and a spread of more than the median; a byte in 7 µs.
        bench.push(
            memory,
            Route::Both,
            64 * KIB,
            figure(128 * KIB, &[1, 1_200, 4_000]),
        );
        bench.push(memory, Route::H2d, 1, figure(1, &quiet(7_000)));
    }
    let text = bench.to_text();
    assert!(text.contains(" 109.2 ±150%! 109.2 ±150%!\n"), "{text}");
    assert!(text.contains(" 1.4e-4 ±0% 1.4e-4 ±0%\n"), "{text}");
}

#[test]
fn an_interrupted_sweep_is_marked() {
    let mut bench = Bench::new(Origin::new("GPU", Some("pcie3-x16".into())), None, 0, 0);
    let text = bench.to_text();
    assert!(text.contains("SIMULATED: sim:pcie3-x16"), "{text}");
    assert!(text.contains("INCOMPLETE"), "{text}");
    assert!(text.contains("Nothing was measured."), "{text}");
    bench.complete = true;
    assert!(!bench.to_text().contains("INCOMPLETE"));
}

#[test]
fn csv_has_a_line_for_each_figure() {
    let csv = sweep("GPU \"A\", first\nof two", 5_461).to_csv();
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + 4 + 2);
    assert_eq!(
        lines[0],
        "origin,device,profile,figure,memory,route,bytes,samples,median_ns,best_ns,p5_ns,p95_ns,\
         gb_per_s,noisy"
    );
    let name = "MEASURED,\"GPU \"\"A\"\", firstof two\",,";
    let rest = lines[2].strip_prefix(name).expect("a quoted name");
    assert_eq!(
        rest,
        "bandwidth,pinned,h2d,4096,3,4000,2000,2200,8500,1.024,true"
    );
    let rest = lines[6].strip_prefix(name).expect("a quoted name");
    assert!(rest.starts_with("latency,pinned,h2d,1,3,3200,"), "{rest}");
}

#[test]
fn written_reports_are_read_back() {
    let bench = sweep("NVIDIA H200", 5_461);
    assert_eq!(
        Bench::from_json(&bench.to_json(&Environment::default())),
        Ok(bench.clone())
    );
    let against = BenchComparison::new(&bench, &bench, "earlier.json");
    assert_eq!(
        Bench::from_json(&against.to_json(&bench, &Environment::default())),
        Ok(bench)
    );
}

/// A plain parser of numbers gets the last digit of some rates wrong.
#[test]
fn rates_are_read_back_to_the_last_digit() {
    let mut bench = sweep("NVIDIA H200", 5_461);
    for median_ns in 91_000..91_200 {
        bench.lines[0].stats.gb_per_s = (1 << 20) as f64 / f64::from(median_ns);
        assert_eq!(
            Bench::from_json(&bench.to_json(&Environment::default())).as_ref(),
            Ok(&bench)
        );
    }
}

#[test]
fn other_texts_are_rejected_with_a_reason() {
    let good = sweep("NVIDIA H200", 5_461).to_json(&Environment::default());
    let changed = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        good.replacen(from, to, 1)
    };
    let reason = |text: &str| Bench::from_json(text).expect_err(text).to_string();
    assert!(reason("").starts_with("not JSON"));
    assert!(reason("[1, 2]").contains("`schema` is missing"));
    assert!(reason("{\"schema\": 1}").contains("not a report"));
    assert!(
        reason(&changed("\"schema\": 1", "\"schema\": 2")).contains("schema 2 is not supported")
    );
    assert!(reason(&changed("\"schema\": 1", "\"schema\": \"1\"")).contains("schema"));
    let unknown = reason(&changed("\"pageable\"", "\"holographic\""));
    assert!(unknown.contains("holographic"), "{unknown}");
    for (from, to) in [
        ("\"bytes\": 65536", "\"bytes\": 0"),
        ("\"samples\": 3", "\"samples\": 0"),
        ("\"p5_ns\": 2200", "\"p5_ns\": 9999999"),
        ("\"best_ns\": 2000", "\"best_ns\": 0"),
        ("\"gb_per_s\": 1.024", "\"gb_per_s\": -1.0"),
        ("\"bytes\": 4096", "\"bytes\": 65536"),
    ] {
        let error = Bench::from_json(&changed(from, to)).expect_err(to);
        assert!(matches!(error, BenchReadError::Figure(_)), "{to}: {error}");
    }
}

/// Damaged files give an error or a report that can be shown.
#[test]
fn no_file_is_too_odd() {
    let bench = sweep("NVIDIA H200", 5_461);
    let good = bench.to_json(&Environment::default()).into_bytes();
    let mut state = 9u64;
    let mut random = move |end: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % end
    };
    const BITS: [&str; 12] = [
        "18446744073709551615",
        "-1",
        "1e999",
        "null",
        "{",
        "]",
        "\"",
        "0",
        "\\u0000",
        "9.9e-320",
        "\"pinned\"",
        ",",
    ];
    let mut read = 0;
    for _ in 0..20_000 {
        let mut text = good.clone();
        for _ in 0..1 + random(3) {
            let at = random(text.len());
            let end = (at + random(12)).min(text.len());
            let bit = match random(3) {
                0 => Vec::new(),
                1 => vec![random(256) as u8],
                _ => BITS[random(BITS.len())].as_bytes().to_vec(),
            };
            text.splice(at..end, bit);
        }
        let Ok(odd) = Bench::from_json(&String::from_utf8_lossy(&text)) else {
            continue;
        };
        read += 1;
        for (before, now) in [(&odd, &bench), (&bench, &odd)] {
            let against = BenchComparison::new(before, now, "odd.json");
            assert!(!against.to_text(&now.origin).is_empty());
            assert!(!against.to_json(now, &Environment::default()).is_empty());
            assert!(!against.to_html(now, &Environment::default()).is_empty());
        }
        assert!(!odd.to_text().is_empty() && !odd.to_csv().is_empty());
    }
    assert!(read > 100, "only {read} were read at all");
}

#[test]
fn a_run_against_itself_has_no_change() {
    let bench = sweep("NVIDIA H200", 5_461);
    let against = BenchComparison::new(&bench, &bench, "self.json");
    assert_eq!(against.of(BenchVerdict::Same).count(), 6);
    assert_eq!(against.changes.len(), 6);
    assert_eq!(against.other_origin, None);
    assert!(!against.is_slower_by(0.0));
    assert_eq!(
        against.to_text(&bench.origin),
        "\nCompared with self.json\n0 slower, 0 faster, 6 unchanged within the noise of both runs.\n"
    );
}

#[test]
fn slowdowns_beyond_the_noise_are_marked() {
    let (before, now) = (sweep("NVIDIA H200", 5_000), sweep("NVIDIA H200", 6_000));
    let against = BenchComparison::new(&before, &now, "before.json");
    let slower: Vec<_> = against.of(BenchVerdict::Slower).collect();
    assert_eq!(slower.len(), 2);
    assert!((slower[0].longer_percent - 20.0).abs() < 0.01);
    assert!(against.is_slower_by(19.0) && !against.is_slower_by(21.0));
    let text = against.to_text(&now.origin);
    assert!(
        text.contains(
            "SLOWER  pinned, host to device, 64 KiB           +20% time  13.11 -> 10.92 GB/s"
        ),
        "{text}"
    );
    let back = BenchComparison::new(&now, &before, "now.json");
    assert_eq!(back.of(BenchVerdict::Faster).count(), 2);
    assert!(!back.is_slower_by(0.0));
    // A difference within the noise of either run is no change.
    let mut noisy = now.clone();
    for line in &mut noisy.lines {
        line.stats.p5_ns = 1;
        line.stats.best_ns = 1;
    }
    let against = BenchComparison::new(&before, &noisy, "before.json");
    assert_eq!(against.of(BenchVerdict::Slower).count(), 0);
    // A single copy before an interruption does not show the noise; a simulated one is exact.
    let mut one = now.clone();
    for line in &mut one.lines {
        line.stats.samples = 1;
    }
    for (before, now) in [(&before, &one), (&one, &before)] {
        let against = BenchComparison::new(before, now, "before.json");
        assert_eq!(against.of(BenchVerdict::Same).count(), 6);
    }
    let (mut before, mut now) = (before, one);
    before.origin = Origin::new("Simulated GPU", Some("h200".into()));
    now.origin = before.origin.clone();
    let against = BenchComparison::new(&before, &now, "before.json");
    assert_eq!(against.of(BenchVerdict::Slower).count(), 2);
}

#[test]
fn runs_with_nothing_in_common_are_not_the_same() {
    let before = sweep("NVIDIA H200", 5_000);
    let mut now = Bench::new(Origin::new("NVIDIA H200", None), None, 7, 1);
    now.push(MemoryKind::Express, Route::D2h, 8, figure(8, &[9]));
    let against = BenchComparison::new(&before, &now, "before.json");
    let text = against.to_text(&now.origin);
    assert!(text.contains("\nNothing to compare: "), "{text}");
    assert!(!text.contains("the same"), "{text}");
}

#[test]
fn other_devices_and_combinations_are_reported() {
    let before = sweep("NVIDIA H100", 5_000);
    let mut now = sweep("NVIDIA H200", 5_000);
    now.lines.remove(0);
    now.push(MemoryKind::Express, Route::D2h, 8, figure(8, &[9]));
    let against = BenchComparison::new(&before, &now, "before.json");
    let text = against.to_text(&now.origin);
    assert!(
        text.contains(
            "WARNING: different devices. Before: Measured on NVIDIA H100. Now: Measured on NVIDIA H200."
        ),
        "{text}"
    );
    assert!(
        text.contains("Only in the earlier run: pageable, host to device, 64 KiB."),
        "{text}"
    );
    assert!(
        text.contains("Only in this run: express, device to host, 8 B."),
        "{text}"
    );
}

#[test]
fn json_says_what_made_it_and_is_read_with_or_without() {
    let bench = sweep("NVIDIA H200", 5_461);
    let environment = Environment {
        version: Some("0.1.0".to_owned()),
        date: Some("2026-11-15T10:20:35Z".to_owned()),
        driver: Some("CUDA 13.0".to_owned()),
        cpus: Some(8),
        ..Environment::default()
    };
    let text = bench.to_json(&environment);
    let json: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
    let made = &json["environment"];
    assert_eq!(made["version"], "0.1.0");
    assert_eq!(made["date"], "2026-11-15T10:20:35Z");
    assert_eq!(made["driver"], "CUDA 13.0");
    assert_eq!(made["cpus"], 8);
    assert_eq!(made.get("cpu"), None);
    assert_eq!(Bench::from_json(&text), Ok(bench.clone()));
    let without = text.replacen("\"environment\"", "\"other\"", 1);
    assert_eq!(Bench::from_json(&without), Ok(bench));
}

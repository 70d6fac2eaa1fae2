//! The rendered calibration, byte for byte.

use pinlane_report::{
    BothRates, Calibration, CalibrationFigures, Environment, ExpressFigures, FileFigures, Origin,
    PinningFigures,
};

const TEXT: &str = "\
Calibration
Measured on NVIDIA H200

copies                  host to device  device to host
pinned                       55.4 GB/s       55.2 GB/s
pageable                     12.5 GB/s       13.3 GB/s
express, 14 lanes            53.9 GB/s       52.0 GB/s
files, 12 threads            50.2 GB/s               -
Pinned, both ways at once: 101.8 GB/s; a copy takes 109% of its time alone.
32 MiB per copy; GB is 10^9 bytes.

kernel launch                                  2.00 µs
hand-over between engines                      1.50 µs
switching an engine to another stream          2.50 µs
submitting a copy or kernel                    1.90 µs
waking a waiting thread                        3.10 µs
allocating 1 GiB pinned by the driver           604 ms
pinning 1 GiB in place                         51.0 ms
kernels in device memory                   2700.0 GB/s

Took       4.20 s
Written to /home/me/.cache/pinlane/profiles/nvidia-h200-0000-01-00.0.toml
Next       pinlane plan --in 1GiB --out 1GiB --kernel 4ms
";

fn rates(h2d: f64, d2h: f64) -> BothRates {
    BothRates {
        h2d_gb_per_s: Some(h2d),
        d2h_gb_per_s: Some(d2h),
    }
}

fn report(origin: Origin) -> Calibration {
    let figures = CalibrationFigures {
        copy_bytes: 32 << 20,
        pinned: rates(55.4, 55.2),
        pageable: rates(12.5, 13.3),
        both_ways_percent: 109,
        both_ways_gb_per_s: Some(101.8),
        express: Some(ExpressFigures {
            lanes: 14,
            rates: rates(53.9, 52.0),
            both_percent: 145,
        }),
        files: Some(FileFigures {
            threads: 12,
            gb_per_s: 50.2,
        }),
        launch_ns: 2_000,
        handover_ns: 1_500,
        switch_ns: 2_500,
        submit_ns: 1_900,
        wake_ns: 3_100,
        kernel_gb_per_s: Some(2700.0),
        pinning: PinningFigures {
            alloc_ns_per_gib: 604_000_000,
            register_ns_per_gib: 51_000_000,
        },
    };
    let profile = serde_json::json!({ "name": "nvidia-h200" });
    let at = "2026-11-15 09:36:59 UTC";
    Calibration::new(origin, at, 4_200_000_000, figures, profile)
}

#[test]
fn a_real_gpu_with_its_file_and_the_next_command() {
    let mut report = report(Origin::new("NVIDIA H200", None));
    let file = "/home/me/.cache/pinlane/profiles/nvidia-h200-0000-01-00.0.toml";
    report.written.push(file.to_owned());
    report.next = "pinlane plan --in 1GiB --out 1GiB --kernel 4ms".to_owned();
    assert_eq!(report.to_text(), TEXT);
}

#[test]
fn a_simulated_calibration_is_marked() {
    let text = report(Origin::new("GPU", Some("h200".into()))).to_text();
    assert!(
        text.contains("\nSIMULATED: sim:h200, not a real GPU\n"),
        "{text}"
    );
    assert!(
        text.contains("Took       4.20 s of simulated time\n"),
        "{text}"
    );
    assert!(text.contains("Written to no file: "), "{text}");
}

#[test]
fn json_keeps_the_name_of_the_simulated_profile_apart_from_the_new_one() {
    let json = report(Origin::new("GPU", Some("h200".into()))).to_json(&Environment::default());
    let json: serde_json::Value = serde_json::from_str(&json).expect("valid JSON");
    assert_eq!(json["schema"], 1);
    assert_eq!(json["profile"], "h200");
    assert_eq!(json["calibrated_profile"]["name"], "nvidia-h200");
    assert_eq!(json["figures"]["express"]["rates"]["h2d_gb_per_s"], 53.9);
}

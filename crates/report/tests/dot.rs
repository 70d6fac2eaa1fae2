//! The rendered dot product, byte for byte.

use pinlane_report::{
    Dot, DotJob, DotKernel, DotResult, DotTimes, DotTree, DotWay, DotWays, Environment, Origin,
};
use serde_json::Value;

const TEXT: &str = "\
=== Dot Product: Standard vs Pinned vs Express ===
10000000 elements per vector, 76.3 MiB in total; tree kernel in double precision
Measured on NVIDIA H200

memory              copy      kernel      result         total
standard         11.4 ms     32.0 µs     12.0 µs       11.4 ms
pinned           1.44 ms     30.0 µs     8.00 µs       1.48 ms
express          1.90 ms     31.0 µs     15.0 µs       1.95 ms
Median of 9 runs of each.

Speedup: 7.74x pinned over standard
Speedup: 5.88x express over standard
Allocating pinned memory took 4.10 ms, not included above.

Result: 2500383.5
Reference: 2500383.5 (double precision, compensated)
Relative error: 1.2e-16
All runs of all three ways gave the same bits.
";

fn job(kernel: DotKernel) -> DotJob {
    DotJob {
        items: 10_000_000,
        seed: 1,
        kernel,
        repeat: 9,
    }
}

fn way(times: [u64; 3], value: f64, relative_error: f64) -> DotWay {
    let [copy_ns, kernel_ns, result_ns] = times;
    DotWay {
        times: Some(DotTimes::new(copy_ns, kernel_ns, result_ns)),
        result: DotResult::new(value, relative_error),
    }
}

fn ways(values: [f64; 3], relative_error: f64) -> DotWays {
    DotWays {
        standard: way([11_400_000, 32_000, 12_000], values[0], relative_error),
        pinned: way([1_440_000, 30_000, 8_000], values[1], relative_error),
        express: way([1_900_000, 31_000, 15_000], values[2], relative_error),
    }
}

fn h200() -> Origin {
    Origin::new("NVIDIA H200", None)
}

fn tree(values: [f64; 3], same_bits: bool) -> Dot {
    let ways = ways(values, 1.23e-16);
    let job = job(DotKernel::Tree);
    Dot::new(h200(), job, Some(4_100_000), 2_500_383.5, ways, same_bits)
}

#[test]
fn three_ways_as_text() {
    let report = tree([2_500_383.5; 3], true);
    assert!(report.is_good());
    assert_eq!(report.to_text(), TEXT);
}

#[test]
fn different_bits_of_the_tree_kernel_are_a_failure() {
    let report = tree([2_500_383.5, 2_500_383.5, 2_500_384.5], false);
    assert!(!report.is_good());
    let text = report.to_text();
    assert!(
        text.contains("Result, express: 2500384.5, relative error"),
        "{text}"
    );
    assert!(
        text.ends_with("FAILED: runs gave different bits; the tree kernel must be reproducible.\n"),
        "{text}"
    );
}

#[test]
fn the_atomic_kernel_may_give_different_bits() {
    let ways = ways([2_471_640.5, 2_471_641.0, 2_471_639.25], 1.15e-2);
    let mut report = Dot::new(
        h200(),
        job(DotKernel::Atomic),
        None,
        2_500_383.5,
        ways,
        false,
    );
    report.tree = Some(DotTree {
        kernel_ns: 15_000,
        result: DotResult::new(2_500_383.5, 0.0),
    });
    assert!(report.is_good());
    let text = report.to_text();
    let end = "\
Result, standard: 2471640.5, relative error 1.1e-2
Result, pinned: 2471641, relative error 1.1e-2
Result, express: 2471639.25, relative error 1.1e-2
Reference: 2500383.5 (double precision, compensated)
Runs gave different bits: atomics add in any order.
The tree kernel takes 15.0 µs with a relative error of 0; the atomic one takes 2.0 times as long.
";
    assert!(text.ends_with(end), "{text}");
    assert!(!text.contains("pinned memory"), "{text}");
}

#[test]
fn ways_that_are_not_modelled_have_no_figures() {
    let mut ways = ways([1.5; 3], 0.0);
    ways.express.times = None;
    let origin = Origin::new("GPU", Some("mine".to_owned()));
    let report = Dot::new(origin, job(DotKernel::Tree), None, 1.5, ways, true);
    let text = report.to_text();
    assert!(
        text.contains("SIMULATED: sim:mine, not a real GPU"),
        "{text}"
    );
    let row = "express     not modelled                          not modelled\n";
    assert!(text.contains(row), "{text}");
    assert_eq!(text.matches("Speedup: ").count(), 1, "{text}");
    assert_eq!(report.speedup_express, None);
}

#[test]
fn nothing_is_divided_by_no_time() {
    let none = way([0, 0, 0], 1.5, 0.0);
    let ways = DotWays {
        standard: none.clone(),
        pinned: none.clone(),
        express: none,
    };
    let report = Dot::new(h200(), job(DotKernel::Tree), None, 1.5, ways, true);
    assert_eq!(
        (report.speedup_pinned, report.speedup_express),
        (None, None)
    );
    assert!(report.to_text().contains("Speedup: none"));
}

#[test]
fn json_holds_the_same() {
    let json = tree([2_500_383.5; 3], true).to_json(&Environment::default());
    let json: Value = serde_json::from_str(&json).expect("valid JSON");
    assert_eq!(json["schema"], 1);
    assert_eq!(json["origin"], "MEASURED");
    assert_eq!(
        (&json["items"], &json["bytes"]),
        (&10_000_000.into(), &80_000_000.into())
    );
    assert_eq!(json["kernel"], "tree");
    assert_eq!(json["pinned"]["times"]["total_ns"], 1_478_000);
    assert_eq!(json["pinned"]["bits"], "0x4143138fc0000000");
    assert_eq!(json["same_bits"], true);
    assert!(json.get("tree").is_none());
}

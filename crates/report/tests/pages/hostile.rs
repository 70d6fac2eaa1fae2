//! Extreme and hostile reports give valid pictures and pages.

use pinlane_report::{Bench, Compare, Environment, Origin, Route};

use crate::check_markup::{check_html, check_svg};
use crate::program_trace::program_trace;
use crate::sample::{bench, compare, environment, measured};

const EVIL: [&str; 6] = [
    "</script><script>alert(1)</script>",
    "\"><svg onload=alert(1)>",
    "</title></style></svg>]]><!-- &amp; 'x'",
    "\u{0}\u{1b}[2J\u{202e}\u{ffff}\n\r\t",
    "漢字🦀 e\u{301} \u{1f469}\u{200d}\u{1f680}",
    "",
];

fn check(bench: &Bench, which: &str) {
    check_svg(&bench.to_svg(), which);
    check_html(&bench.to_html(&environment()), which);
}

/// All of it, with a text of others.
fn hostile_environment(text: &str) -> Environment {
    let text = || Some(text.to_owned());
    Environment {
        version: text(),
        date: text(),
        driver: text(),
        gpu: text(),
        cpu: text(),
        cpus: Some(u64::MAX),
        system: text(),
    }
}

fn check_compare(compare: &Compare, which: &str) {
    check_svg(&compare.to_svg(), which);
    check_html(&compare.to_html(&environment()), which);
}

#[test]
fn texts_do_not_break_out() {
    let long = "long ".repeat(2000) + &"x".repeat(5000);
    for evil in EVIL.into_iter().chain([long.as_str()]) {
        for origin in [
            Origin::new(evil, None),
            Origin::new(evil, Some(evil.to_owned())),
            Origin::computed(evil, evil, false),
        ] {
            let mut bench = bench(origin.clone());
            bench.began = Some(evil.to_owned());
            bench.notes = vec![evil.to_owned(); 3];
            check(&bench, evil);
            check_html(&bench.to_html(&hostile_environment(evil)), evil);
            check_compare(&compare(origin.clone()), evil);
            let trace = program_trace(origin, evil, 3_000_000);
            check_html(&trace.to_html(&environment()), evil);
        }
    }
}

#[test]
fn numbers_do_not_break_pictures() {
    let rates = [0.0, -5.0, 1e-300, 1e300, f64::NAN, f64::INFINITY];
    let times = [0, 1, u64::MAX];
    for (index, rate) in rates.into_iter().enumerate() {
        for (time_index, ns) in times.into_iter().enumerate() {
            let mut bench = bench(measured());
            for line in bench.lines.iter_mut().skip(index).step_by(3) {
                line.stats.gb_per_s = rate;
                (line.stats.p5_ns, line.stats.p95_ns) = (ns, ns / 2);
                line.point.bytes = times[(time_index + index) % 3];
            }
            for latency in bench.latencies.iter_mut().step_by(2) {
                latency.stats.median_ns = ns;
            }
            check(&bench, &format!("{rate} and {ns}"));

            let mut compare = compare(measured());
            for row in compare.rows.iter_mut().skip(time_index) {
                (row.h2d.gb_per_s, row.h2d.p5_ns, row.get_ns) = (rate, ns, ns);
            }
            check_compare(&compare, &format!("{rate} and {ns}"));
            compare.limit.gb_per_s = rate;
            check_compare(&compare, &format!("limit {rate}"));
            compare.rows.clear();
            check_compare(&compare, "no rows");
        }
    }
}

#[test]
fn every_selection_of_lines_is_drawn() {
    let whole = bench(measured());
    for seed in 0..60u64 {
        let mut bench = whole.clone();
        // A few lines here and there, by a plain congruence.
        let mut state = seed;
        let mut keep = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % 5 == 0
        };
        bench.lines.retain(|_| keep());
        bench.latencies.retain(|_| keep());
        check(&bench, &format!("seed {seed}"));
        bench.lines.retain(|line| line.point.route == Route::Both);
        check(&bench, &format!("seed {seed}, both ways"));
    }
}

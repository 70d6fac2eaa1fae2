//! Earlier reports of `pinlane bench`.

use pinlane_report::{Bench, BenchComparison, BenchVerdict, Environment};

/// A report as JSON. A valid one can be shown in every format, and does not differ from itself.
pub fn report(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let bench = match Bench::from_json(text) {
        Ok(bench) => bench,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let environment = Environment::default();
    assert_eq!(
        Bench::from_json(&bench.to_json(&environment)).as_ref(),
        Ok(&bench)
    );
    check_text(&bench.to_text());
    assert!(bench.to_csv().lines().count() > bench.lines.len());
    check_svg(&bench.to_svg());
    assert!(bench.to_html(&environment).ends_with("</html>\n"));

    let same = BenchComparison::new(&bench, &bench, "the same");
    for verdict in [BenchVerdict::Slower, BenchVerdict::Faster] {
        assert_eq!(same.of(verdict).count(), 0);
    }
    check_slower(&bench);
}

/// Compares a report with one that is ten times slower.
fn check_slower(before: &Bench) {
    let mut now = before.clone();
    for line in &mut now.lines {
        let stats = &mut line.stats;
        for ns in [
            &mut stats.best_ns,
            &mut stats.p5_ns,
            &mut stats.median_ns,
            &mut stats.p95_ns,
        ] {
            *ns = ns.saturating_mul(10);
        }
    }
    let environment = Environment::default();
    let comparison = BenchComparison::new(before, &now, "before\u{1b}[2J");
    assert_eq!(comparison.of(BenchVerdict::Faster).count(), 0);
    check_text(&comparison.to_text(&now.origin));
    assert!(
        comparison
            .to_html(&now, &environment)
            .ends_with("</html>\n")
    );
    // A report with a comparison in it is a report, too.
    let read = Bench::from_json(&comparison.to_json(&now, &environment));
    assert_eq!(read.as_ref(), Ok(&now));
}

/// A terminal shows it as it is.
fn check_text(text: &str) {
    let is_bad = |c: char| c.is_control() && c != '\n';
    assert!(!text.contains(is_bad), "{text:?}");
}

fn check_svg(svg: &str) {
    if let Err(error) = roxmltree::Document::parse(svg) {
        panic!("not XML: {error}");
    }
}

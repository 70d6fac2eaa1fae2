//! `trace` as text, JSON and page.

use pinlane_report::{
    Environment, MemoryKind, Origin, ProgramTrace, Route, TraceAction, TraceFinding, TraceSite,
};

fn site(place: &str, action: TraceAction) -> TraceSite {
    TraceSite {
        place: place.into(),
        frames: vec![place.into(), "libtorch.so!copy+0x10".into()],
        action,
        route: None,
        memory: None,
        asynchronous: false,
        calls: 12,
        failures: 0,
        bytes: 0,
        ns: Some(3_000_000),
        pinned_ns: None,
        express_ns: None,
        lost_ns: None,
    }
}

fn sample(origin: Origin) -> ProgramTrace {
    let copy = TraceSite {
        route: Some(Route::H2d),
        memory: Some(MemoryKind::Pageable),
        asynchronous: true,
        bytes: 12 << 20,
        pinned_ns: Some(1_000_000),
        express_ns: Some(1_200_000),
        lost_ns: Some(2_000_000),
        ..site("train.py:12 in <module>", TraceAction::Copy)
    };
    let wrong = TraceSite {
        failures: 2,
        ..site("train.py:20 in close", TraceAction::Unregister)
    };
    ProgramTrace {
        command: "python train.py".into(),
        processes: 2,
        calls: 36,
        elapsed_ns: origin.is_measured().then_some(1_500_000_000),
        sites: vec![copy, wrong, site("train.py:30 in main", TraceAction::Wait)],
        findings: vec![TraceFinding {
            id: "pageable_async",
            title: "Pageable memory in asynchronous copies",
            calls: 12,
            bytes: 12 << 20,
            lost_ns: Some(2_000_000),
            places: ["a.py:1 in f", "b.py:2 in g", "c.py:3 in h", "d.py:4 in i"]
                .map(String::from)
                .into(),
            remedy: "Pin it.",
        }],
        profile: Some("h200".into()),
        notes: vec!["Something is not known".into()],
        top: 2,
        origin,
    }
}

#[test]
fn text_lists_sites_and_findings() {
    let text = sample(Origin::new("NVIDIA H200", None)).to_text();
    assert_eq!(
        text,
        "\
=== Trace ===
python train.py: 36 calls of 2 processes in 1.50 s
Measured on NVIDIA H200
Something is not known.

            lost        time     pinned*    express*       calls       bytes
train.py:12 in <module>: async pageable copy to device
         2.00 ms     3.00 ms     1.00 ms     1.20 ms          12    12.0 MiB
train.py:20 in close: unregistration, 2 failed
               –     3.00 ms           –           –          12           –
… and 1 site; --top shows more.
*: computed with profile h200, not measured.

1 finding
1. Pageable memory in asynchronous copies: 12 calls, 12.0 MiB, about 2.00 ms lost
   at a.py:1 in f
   at b.py:2 in g
   at c.py:3 in h
   and 1 other place
   Pin it.
"
    );
}

#[test]
fn simulated_is_never_passed_off_as_measured() {
    let trace = sample(Origin::new("GPU", Some("h200".into())));
    let environment = Environment::default();
    for text in [
        trace.to_text(),
        trace.to_json(&environment),
        trace.to_html(&environment),
    ] {
        assert!(text.contains("SIMULATED"), "{text}");
    }
    assert!(trace.to_text().contains("time*") && trace.to_html(&environment).contains("Time*"));
}

#[test]
fn json_has_all_sites() {
    let trace = sample(Origin::new("NVIDIA H200", None));
    let json: serde_json::Value =
        serde_json::from_str(&trace.to_json(&Environment::default())).unwrap();
    assert_eq!(json["sites"].as_array().unwrap().len(), 3);
    assert_eq!(json["sites"][0]["memory"], "pageable");
    assert_eq!(json["sites"][0]["frames"][1], "libtorch.so!copy+0x10");
    assert_eq!(json["findings"][0]["id"], "pageable_async");
}

#[test]
fn the_page_shows_all_places_and_escapes_them() {
    let page = sample(Origin::new("NVIDIA H200", None)).to_html(&Environment::default());
    assert!(page.contains("train.py:12 in &lt;module&gt;") && !page.contains("in <module>"));
    assert!(page.contains("d.py:4 in i") && page.contains("Pin it."));
}

#[test]
fn without_a_profile_or_calls_it_says_so() {
    let mut trace = sample(Origin::new("NVIDIA H200", None));
    trace.profile = None;
    assert!(trace.to_text().contains("run `pinlane calibrate` once"));
    trace.sites.clear();
    trace.findings.clear();
    let text = trace.to_text();
    assert!(
        text.contains("No copies, pinned memory or waits.\n"),
        "{text}"
    );
    assert!(
        text.contains("Nothing is wrong as far as this can be seen.\n"),
        "{text}"
    );
    assert!(
        trace
            .to_html(&Environment::default())
            .contains("Nothing is wrong")
    );
}

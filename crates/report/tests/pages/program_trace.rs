//! The page of a traced program.

use pinlane_report::{
    MemoryKind, Origin, ProgramTrace, Route, TraceAction, TraceFinding, TraceSite,
};

use crate::check_markup::check_html;
use crate::sample::{environment, measured, simulated};

/// A trace whose places, command and notes are a text of others.
pub fn program_trace(origin: Origin, text: &str, ns: u64) -> ProgramTrace {
    let site = |action| TraceSite {
        place: text.to_owned(),
        frames: vec![text.to_owned()],
        action,
        route: Some(Route::H2d),
        memory: Some(MemoryKind::Pageable),
        asynchronous: true,
        calls: 3,
        failures: 1,
        bytes: 4096,
        ns: Some(ns),
        pinned_ns: Some(ns / 4),
        express_ns: Some(ns / 3),
        lost_ns: Some(ns / 4 * 3),
    };
    ProgramTrace {
        command: text.to_owned(),
        processes: 1,
        calls: 3,
        elapsed_ns: Some(ns),
        sites: TraceAction::ALL.map(site).into(),
        findings: vec![TraceFinding {
            id: "pageable_async",
            title: "Pageable memory in asynchronous copies",
            calls: 3,
            bytes: 4096,
            lost_ns: Some(ns),
            places: vec![text.to_owned(); 5],
            remedy: "Pin it.",
        }],
        profile: Some(text.to_owned()),
        notes: vec![text.to_owned()],
        top: 20,
        origin,
    }
}

#[test]
fn the_page_is_valid() {
    for origin in [measured(), simulated()] {
        for ns in [0, 1, 3_000_000, u64::MAX] {
            let trace = program_trace(origin.clone(), "train.py:12 in main", ns);
            check_html(&trace.to_html(&environment()), "trace");
        }
    }
}

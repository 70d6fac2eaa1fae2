//! The rendered examination of a machine.

use pinlane_report::{
    Doctor, DoctorFinding, DoctorGroup, DoctorStatus, DoctorStyle, Environment, Origin,
};
use serde_json::Value;

fn findings() -> Vec<DoctorFinding> {
    let mut link = DoctorFinding::warn(DoctorGroup::Link, "link width", "x8 of x16")
        .remedy("reseat the card", 90);
    link.gpu = Some(0);
    vec![
        DoctorFinding::warn(DoctorGroup::Memory, "huge pages", "never").remedy(
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
            60,
        ),
        link,
        DoctorFinding::ok(DoctorGroup::Gpu, "CUDA driver", "13.0"),
        DoctorFinding::skip(DoctorGroup::Process, "MPS", "the system does not tell"),
    ]
}

fn report(origin: Option<Origin>) -> Doctor {
    Doctor::new(origin, vec!["NVIDIA H200".into()], findings())
}

fn real() -> Doctor {
    report(Some(Origin::new("NVIDIA H200", None)))
}

#[test]
fn columns_groups_remedies_and_the_verdict_last() {
    assert_eq!(
        real().to_text(DoctorStyle::default()),
        "Doctor\n\
         NVIDIA H200\n\
         \n\
         driver and GPU\n\
         \x20 ok    CUDA driver  13.0\n\
         \n\
         link\n\
         \x20 warn  link width   x8 of x16\n\
         \x20                    -> reseat the card\n\
         \n\
         memory\n\
         \x20 warn  huge pages   never\n\
         \x20                    -> echo madvise | sudo tee\n\
         \x20                       /sys/kernel/mm/transparent_hugepage/enabled\n\
         \n\
         process\n\
         \x20 skip  MPS          the system does not tell\n\
         \n\
         First: reseat the card\n\
         1 ok, 2 warn, 0 fail, 1 skip\n"
    );
}

#[test]
fn failures_come_before_heavier_warnings() {
    let mut all = findings();
    all.push(DoctorFinding::fail(DoctorGroup::Process, "budget", "junk").remedy("unset it", 1));
    let report = Doctor::new(None, Vec::new(), all);
    assert_eq!(report.first.as_deref(), Some("unset it"));
    assert!(!report.is_good());
    assert!(real().is_good());
    let healthy = Doctor::new(
        None,
        Vec::new(),
        vec![DoctorFinding::ok(DoctorGroup::Gpu, "a", "b")],
    );
    assert_eq!(healthy.first, None);
    assert_eq!(healthy.verdict(), "1 ok, 0 warn, 0 fail");
    assert!(!healthy.to_text(DoctorStyle::default()).contains("First"));
}

#[test]
fn no_line_is_wider_than_the_terminal_but_for_whole_words() {
    for width in [0, 40, 57, 80, 100, 1_000_000] {
        let look = DoctorStyle {
            width,
            colour: false,
        };
        let text = real().to_text(look);
        let most = width.clamp(DoctorStyle::WIDTH_MIN, DoctorStyle::WIDTH_MAX);
        for line in text.lines() {
            let whole_word = line.trim_start().split(' ').count() == 1;
            assert!(line.len() <= most || whole_word, "{width}: {line}");
        }
        assert!(text.contains("/sys/kernel/mm/transparent_hugepage/enabled"));
    }
}

#[test]
fn colours_only_where_they_are_asked_for() {
    let plain = real().to_text(DoctorStyle::default());
    assert!(!plain.contains('\u{1b}'));
    let look = DoctorStyle {
        colour: true,
        ..DoctorStyle::default()
    };
    let coloured = real().to_text(look);
    assert!(coloured.contains("\u{1b}[33mwarn\u{1b}[0m"));
    let mut stripped = coloured;
    for code in ["1", "2", "31", "32", "33", "0"] {
        stripped = stripped.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert_eq!(stripped, plain);
}

#[test]
fn text_from_outside_moves_no_cursor() {
    let nasty = "a\u{1b}[2J\nb\u{202e}";
    let findings = vec![DoctorFinding::warn(DoctorGroup::Gpu, nasty, nasty).remedy(nasty, 1)];
    let origin = Origin::new(nasty, None);
    let text =
        Doctor::new(Some(origin), vec![nasty.into()], findings).to_text(DoctorStyle::default());
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    assert_eq!(text.lines().last(), Some("0 ok, 1 warn, 0 fail"));
}

#[test]
fn simulated_devices_are_marked() {
    let mut all = findings();
    all[1].simulated = true;
    let origin = Origin::new("GPU", Some("h200".into()));
    let report = Doctor::new(Some(origin), vec!["GPU".into()], all);
    let text = report.to_text(DoctorStyle::default());
    assert!(text.starts_with("Doctor\nSIMULATED: sim:h200, not a real GPU; host: this machine"));
    assert!(text.contains("link width   SIMULATED: x8"), "{text}");
    let json: Value =
        serde_json::from_str(&report.to_json(&Environment::default())).expect("valid JSON");
    assert_eq!(json["origin"], "SIMULATED");
    assert_eq!(json["profile"], "h200");
}

#[test]
fn findings_name_their_gpus_where_these_differ() {
    let origin = Some(Origin::new("A", None));
    let devices = vec!["A".to_owned(), "A".into(), "B".into()];
    let text = |findings| {
        Doctor::new(origin.clone(), devices.clone(), findings).to_text(DoctorStyle::default())
    };
    assert!(text(findings()).starts_with("Doctor\n2 x A, B\n"));
    assert!(text(findings()).contains("link width, GPU 0"));
    let mut all = findings();
    for number in [1, 2] {
        let mut same = all[1].clone();
        same.gpu = Some(number);
        all.push(same);
    }
    let same = text(all.clone());
    assert_eq!(same.matches("link width").count(), 1, "{same}");
    assert!(same.contains("warn  link width   x8"), "{same}");
    assert!(same.ends_with("1 ok, 4 warn, 0 fail, 1 skip\n"));
    all[4].seen = "x4 of x16".into();
    let differing = text(all);
    assert!(differing.contains("link width, GPU 0 2"), "{differing}");
    assert!(differing.contains("link width, GPU 1"), "{differing}");
}

#[test]
fn json_carries_every_finding() {
    let json: Value =
        serde_json::from_str(&real().to_json(&Environment::default())).expect("valid JSON");
    assert_eq!(json["schema"], 1);
    assert_eq!(json["origin"], "MEASURED");
    assert_eq!(json["counts"]["warn"], 2);
    assert_eq!(json["first"], "reseat the card");
    let all = json["findings"].as_array().expect("a list");
    assert_eq!(all.len(), 4);
    assert_eq!(all[0]["group"], "gpu");
    assert_eq!(all[0]["remedy"], Value::Null);
    assert_eq!(all[1]["check"], "link width");
    assert_eq!(all[1]["gpu"], 0);
    assert_eq!(all[3]["status"], DoctorStatus::Skip.name());
    let none: Value =
        serde_json::from_str(&report(None).to_json(&Environment::default())).expect("valid JSON");
    assert_eq!(none.get("origin"), None);
}

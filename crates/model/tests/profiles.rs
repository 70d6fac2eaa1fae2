//! Built-in profiles, parsing and validation.

use pinlane_model::{CostCurve, Direction, HostKind, Profile, ProfileError};

const MIB: u64 = 1 << 20;

fn gb_per_s(profile: &Profile, direction: Direction, kind: HostKind, bytes: u64) -> f64 {
    bytes as f64 / profile.copy_ns(direction, kind, bytes) as f64
}

#[test]
fn every_built_in_profile_is_valid_and_has_its_name() {
    let names: Vec<_> = Profile::builtin_names().collect();
    assert_eq!(
        names,
        ["pcie3-x16", "pcie4-x16", "pcie5-x16", "h200", "null"]
    );
    for name in names {
        assert_eq!(Profile::builtin(name).unwrap().name, name);
    }
    assert!(Profile::builtin("pcie9-x16").is_none());
}

#[test]
fn pcie3_gives_the_classic_figures_at_256_mib() {
    let profile = Profile::builtin("pcie3-x16").unwrap();
    for direction in [Direction::HostToDevice, Direction::DeviceToHost] {
        let pageable = gb_per_s(&profile, direction, HostKind::Pageable, 256 * MIB);
        let pinned = gb_per_s(&profile, direction, HostKind::Pinned, 256 * MIB);
        assert_eq!(format!("{pageable:.1}"), "6.0");
        assert_eq!(format!("{pinned:.1}"), "12.0");
        assert_eq!(format!("{:.2}", pinned / pageable), "2.00");
    }
}

#[test]
fn h200_gives_the_measured_figures_within_three_percent() {
    let profile = Profile::builtin("h200").unwrap();
    let calls = profile.calls;
    let measured = [
        (Direction::HostToDevice, HostKind::Pinned, 4 << 10, 0.52),
        (Direction::HostToDevice, HostKind::Pinned, MIB, 38.4),
        (Direction::HostToDevice, HostKind::Pinned, 16 * MIB, 54.0),
        (Direction::HostToDevice, HostKind::Pinned, 1024 * MIB, 55.5),
        (Direction::HostToDevice, HostKind::Pageable, 4 << 10, 0.69),
        (Direction::HostToDevice, HostKind::Pageable, MIB, 11.6),
        (Direction::HostToDevice, HostKind::Pageable, 256 * MIB, 9.0),
        (Direction::HostToDevice, HostKind::Pageable, 1024 * MIB, 7.2),
        (Direction::DeviceToHost, HostKind::Pinned, 64 << 10, 7.77),
        (Direction::DeviceToHost, HostKind::Pinned, 256 * MIB, 55.4),
        (Direction::DeviceToHost, HostKind::Pageable, 64 << 10, 4.22),
        (Direction::DeviceToHost, HostKind::Pageable, 256 * MIB, 14.8),
    ];
    for (direction, kind, bytes, expected) in measured {
        let waits = (direction, kind) != (Direction::HostToDevice, HostKind::Pageable);
        let call_ns = calls.submit_ns
            + if waits {
                calls.sync_ns + calls.wake_ns
            } else {
                0
            };
        let ns = profile.copy_ns(direction, kind, bytes) + call_ns;
        let found = bytes as f64 / ns as f64;
        let error = (found / expected - 1.0).abs();
        assert!(
            error < 0.03,
            "{direction:?} {kind:?} {bytes}: {found} for {expected}"
        );
    }
}

#[test]
fn the_null_profile_costs_nothing() {
    let profile = Profile::builtin("null").unwrap();
    assert_eq!(
        profile.copy_ns(Direction::HostToDevice, HostKind::Pageable, 1 << 40),
        0
    );
    assert_eq!(profile.kernel_ns(1 << 40, 0), 0);
    assert_eq!(profile.device_copy_ns(1 << 40), 0);
    assert_eq!(profile.host_memory.alloc.ns(1 << 40), 0);
}

#[test]
fn a_curve_passes_through_its_knots_and_keeps_its_last_slope() {
    let curve = CostCurve {
        latency_ns: 100,
        bytes_per_s: 1_000_000_000,
        knots: vec![[1_000, 200], [2_000, 1_200]],
    };
    assert_eq!(curve.ns(0), 100);
    assert_eq!(curve.ns(500), 150);
    assert_eq!(curve.ns(1_000), 200);
    assert_eq!(curve.ns(1_500), 700);
    assert_eq!(curve.ns(2_000), 1_200);
    assert_eq!(curve.ns(5_000), 4_200);
    assert_eq!(CostCurve::straight(7, 0).ns(u64::MAX), 7);
    assert_eq!(CostCurve::straight(1, 1).ns(u64::MAX), u64::MAX);
}

#[test]
fn errors_name_the_field() {
    let good = include_str!("../profiles/pcie3-x16.toml");
    let cases = [
        ("h2d_engines = 1", "h2d_engines = 0", "device.h2d_engines"),
        (
            "async_engines = 2",
            "async_engines = 1",
            "device.async_engines",
        ),
        ("d2h_engines = 1", "d2h_engines = 2", "device.async_engines"),
        (
            "both_ways_percent = 100",
            "both_ways_percent = 99",
            "both_ways_percent",
        ),
        (
            "memory_bytes = 17_179_869_184",
            "memory_bytes = 0",
            "device.memory_bytes",
        ),
        ("name = \"pcie3-x16\"", "name = \" \"", "name"),
        (
            "bytes_per_s = 12_000_000_000 }",
            "bytes_per_s = 1, knots = [[8, 9_000], [8, 9_000]] }",
            "h2d.pinned.knots",
        ),
    ];
    for (from, to, expected) in cases {
        assert!(good.contains(from), "{from}");
        match Profile::from_toml(&good.replacen(from, to, 1)) {
            Err(ProfileError::Invalid { field, .. }) => assert_eq!(field, expected),
            other => panic!("{to}: {other:?}"),
        }
    }
}

#[test]
fn unknown_missing_and_mistyped_fields_are_named_by_the_parser() {
    let good = include_str!("../profiles/pcie3-x16.toml");
    for (from, to, word) in [
        ("query_ns = 500", "querry_ns = 500", "querry_ns"),
        ("query_ns = 500", "", "query_ns"),
        ("query_ns = 500", "query_ns = \"fast\"", "query_ns"),
    ] {
        match Profile::from_toml(&good.replacen(from, to, 1)) {
            Err(ProfileError::Parse { message }) => assert!(message.contains(word), "{message}"),
            other => panic!("{to}: {other:?}"),
        }
    }
}

#[test]
fn a_profile_can_be_written_and_read_back() {
    for name in Profile::builtin_names() {
        let profile = Profile::builtin(name).unwrap();
        let text = profile.to_toml();
        assert_eq!(Profile::from_toml(&text).unwrap(), profile, "{text}");
    }
    let mut profile = Profile::builtin("h200").unwrap();
    profile.name = "a \"name\" with\nodd characters = [1]".to_owned();
    profile.device.handover_ns = 123_456;
    profile.device.numa_node = None;
    profile.express = None;
    let text = profile.to_toml();
    assert_eq!(Profile::from_toml(&text).unwrap(), profile, "{text}");
    assert!(!text.contains("express"));
    profile.both_ways_percent = u64::MAX;
    let text = profile.to_toml();
    assert_eq!(Profile::from_toml(&text).unwrap(), profile, "{text}");
}

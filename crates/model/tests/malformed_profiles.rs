//! Malformed profile files are refused with an error, or they work.

use pinlane_model::pipeline::{Job, KernelTime, Memory};
use pinlane_model::planner::{Limits, best};
use pinlane_model::{Profile, SplitMix64};

/// Replacements for numbers.
const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "-1",
    "99",
    "100",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "1e400",
    "nan",
    "\"\"",
];

/// Breaks a text, or replaces a number.
fn broken(text: &str, random: &mut SplitMix64) -> Vec<u8> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..=random.below(3) {
        let at = random.index(lines.len());
        match random.below(6) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at].clone()),
            2 => {
                let other = random.index(lines.len());
                lines.swap(at, other);
            }
            _ => {
                if let Some((name, _)) = lines[at].split_once('=') {
                    lines[at] = format!("{name}= {}", random.pick(&NUMBERS));
                }
            }
        }
    }
    let mut bytes = lines.join("\n").into_bytes();
    match random.below(6) {
        0 => bytes.truncate(random.index(bytes.len())),
        1 => {
            let at = random.index(bytes.len());
            bytes[at] = random.next_u64() as u8;
        }
        _ => {}
    }
    bytes
}

#[test]
fn malformed_profiles_panic_neither_parser_nor_planner() {
    let texts: Vec<String> = Profile::builtin_names()
        .filter_map(Profile::builtin)
        .map(|profile| profile.to_toml())
        .collect();
    let mut random = SplitMix64::new(1);
    let (mut refused, mut planned) = (0, 0);
    for round in 0..3_000 {
        let bytes = broken(&texts[round % texts.len()], &mut random);
        let text = String::from_utf8_lossy(&bytes);
        match Profile::from_toml(&text) {
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
            Ok(profile) => {
                // A valid profile can be written and read back.
                let again = Profile::from_toml(&profile.to_toml());
                assert_eq!(again.as_ref(), Ok(&profile));
                // Planning is slow, so only some of them.
                if round % 16 < 4 {
                    planned += 1;
                    plan(&profile, &mut random);
                }
            }
        }
    }
    assert!(refused > 500, "{refused}: the texts are not broken enough");
    assert!(planned > 100, "{planned}: the texts are too broken");
}

/// Plans a job; an error is fine, a panic is not.
fn plan(profile: &Profile, random: &mut SplitMix64) {
    let memories = [Memory::Pinned, Memory::Pageable, Memory::Express];
    let memory = *random.pick(&memories);
    let job = Job {
        bytes_in: 1 + random.below(8 << 20),
        bytes_out: random.below(8 << 20),
        kernel: KernelTime {
            fixed_ns: random.below(10_000),
            ns_per_gib: random.below(40_000_000),
            ..KernelTime::default()
        },
        input: memory,
        output: memory,
        host_ns_per_chunk: 0,
    };
    if let Err(error) = best(&job, profile, &Limits::default()) {
        assert!(!error.to_string().is_empty());
    }
}

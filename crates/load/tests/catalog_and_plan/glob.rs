//! Patterns, compared with a matcher that is too simple to be wrong.

use pinlane::load::{Glob, LoadErrorKind};

use super::allocation_counter::peak_bytes;
use super::support::SplitMix64;

/// A part of a pattern.
#[derive(Clone)]
enum Word {
    Star,
    Any,
    One(char),
    Of(bool, Vec<char>),
}

/// Matches by trying everything.
fn matches(words: &[Word], name: &[char]) -> bool {
    match (words, name) {
        ([], []) => true,
        ([Word::Star, rest @ ..], _) => {
            matches(rest, name) || (!name.is_empty() && matches(words, &name[1..]))
        }
        ([Word::Any, rest @ ..], [_, tail @ ..]) => matches(rest, tail),
        ([Word::One(one), rest @ ..], [c, tail @ ..]) => one == c && matches(rest, tail),
        ([Word::Of(negated, set), rest @ ..], [c, tail @ ..]) => {
            set.contains(c) != *negated && matches(rest, tail)
        }
        _ => false,
    }
}

fn text(words: &[Word]) -> String {
    let word = |word: &Word| match word {
        Word::Star => "*".to_owned(),
        Word::Any => "?".to_owned(),
        Word::One(c) => c.to_string(),
        Word::Of(negated, set) => {
            let not = if *negated { "!" } else { "" };
            format!("[{not}{}]", set.iter().collect::<String>())
        }
    };
    words.iter().map(word).collect()
}

#[test]
fn random_patterns_match_like_the_simple_matcher() {
    const LETTERS: [char; 4] = ['a', 'b', '.', 'ü'];
    let (mut random, mut hits) = (SplitMix64::new(7), 0);
    let cases = 20_000;
    for _ in 0..cases {
        let words: Vec<Word> = (0..random.below(6))
            .map(|_| match random.below(5) {
                0 => Word::Star,
                1 => Word::Any,
                2 => {
                    let negated = random.below(2) == 0;
                    let set = (0..=random.below(2)).map(|_| *random.pick(&LETTERS));
                    Word::Of(negated, set.collect())
                }
                _ => Word::One(*random.pick(&LETTERS)),
            })
            .collect();
        let name: Vec<char> = (0..random.below(7))
            .map(|_| *random.pick(&LETTERS))
            .collect();
        let expected = matches(&words, &name);
        let (pattern, name) = (text(&words), name.iter().collect::<String>());
        let glob = Glob::new(&pattern).expect("a good pattern");
        assert_eq!(glob.matches(&name), expected, "{pattern} {name}");
        hits += usize::from(expected);
    }
    assert!((cases / 20..cases / 2).contains(&hits), "{hits} matched");
}

#[test]
fn classes() {
    let cases = [
        ("[a-c]", "b", true),
        ("[a-c]", "d", false),
        ("[!a-c]", "d", true),
        ("[^a-c]", "b", false),
        ("[]]", "]", true),
        ("[]a]", "a", true),
        ("[!]]", "]", false),
        ("[a-]", "-", true),
        ("[-a]", "-", true),
        ("[*]", "*", true),
        ("[*]", "x", false),
        ("[a-c0-2]x", "1x", true),
        ("[α-ω]", "λ", true),
        ("a]", "a]", true),
    ];
    for (pattern, name, expected) in cases {
        let glob = Glob::new(pattern).expect("a good pattern");
        assert_eq!(glob.matches(name), expected, "{pattern} {name}");
        assert_eq!(glob.pattern(), pattern);
    }
    for pattern in ["[", "[]", "[!]", "[a", "a[b-", "[c-a]", "x[z-a]y"] {
        let error = Glob::new(pattern).expect_err(pattern);
        assert!(
            matches!(error.kind(), LoadErrorKind::InvalidGlob { .. }),
            "{error}"
        );
    }
}

#[test]
fn many_stars_take_polynomial_time() {
    // Trying everything would take longer than the age of the universe.
    let glob = Glob::new("*a".repeat(1000) + "b").expect("a good pattern");
    assert!(!glob.matches(&"a".repeat(5000)));
    assert!(glob.matches(&("a".repeat(5000) + "b")));
}

#[test]
fn matching_allocates_nothing() {
    let glob = Glob::new("model.layers.[0-3].*.weight").expect("a good pattern");
    for (name, expected) in [
        ("model.layers.2.mlp.up.weight", true),
        ("model.layers.2.mlp.up.bias", false),
        ("lm_head.weight", false),
    ] {
        assert_eq!(peak_bytes(|| glob.matches(name)), (expected, 0), "{name}");
    }
}

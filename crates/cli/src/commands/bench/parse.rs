//! Lists of names.

use pinlane_report::{MemoryKind, Route};

/// Kinds of memory, in the order of tables, each once.
#[derive(Clone)]
pub(super) struct Kinds(pub(super) Vec<MemoryKind>);

/// Directions, in the order of tables, each once.
#[derive(Clone)]
pub(super) struct Routes(pub(super) Vec<Route>);

pub(super) fn kinds(text: &str) -> Result<Kinds, String> {
    chosen(text, &MemoryKind::ALL, MemoryKind::name).map(Kinds)
}

pub(super) fn routes(text: &str) -> Result<Routes, String> {
    chosen(text, &Route::ALL, Route::name).map(Routes)
}

/// A share of a hundred, which may be more than that.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let number = text.strip_suffix('%').unwrap_or(text).trim_end().parse();
    match number {
        Ok(percent) if (0.0..=1e6).contains(&percent) => Ok(percent),
        _ => Err("write a number of percent from 0 on, such as 5".to_owned()),
    }
}

fn chosen<T: Copy>(text: &str, all: &[T], name: fn(T) -> &'static str) -> Result<Vec<T>, String> {
    let names: Vec<_> = text.split(',').map(str::trim).collect();
    for wanted in &names {
        if *wanted != "all" && !all.iter().any(|item| name(*item) == *wanted) {
            let known: Vec<_> = all.iter().map(|item| name(*item)).collect();
            let known = known.join(", ");
            return Err(format!(
                "`{wanted}` is not known; write some of {known}, separated by commas, or all"
            ));
        }
    }
    let is_wanted = |item: &T| names.contains(&"all") || names.contains(&name(*item));
    Ok(all.iter().copied().filter(is_wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_any_order() {
        let Kinds(kinds) = kinds("express, pinned,pinned").expect("known");
        assert_eq!(kinds, [MemoryKind::Pinned, MemoryKind::Express]);
        assert_eq!(routes("all").expect("known").0, Route::ALL);
        assert_eq!(routes("both,all").expect("known").0, Route::ALL);
    }

    #[test]
    fn other_words_are_refused_with_those_that_are_known() {
        for text in ["", "pinned,", "Pinned", "fast", "pinned express"] {
            let error = kinds(text).err().expect("refused");
            assert!(error.contains("write-combined"), "{text}: {error}");
        }
        assert!(routes("up").is_err());
    }

    #[test]
    fn percents() {
        assert_eq!(percent("5"), Ok(5.0));
        assert_eq!(percent(" 2.5 %"), Ok(2.5));
        for text in ["", "-1", "nan", "inf", "%", "5%%", "x"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}

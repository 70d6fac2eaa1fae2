//! Values of the flags.

use pinlane_report::{MemoryKind, Route};

/// Distinct kinds of memory, in the order of the tables.
#[derive(Clone)]
pub(super) struct Kinds(pub(super) Vec<MemoryKind>);

/// Distinct directions, in the order of the tables.
#[derive(Clone)]
pub(super) struct Routes(pub(super) Vec<Route>);

pub(super) fn kinds(text: &str) -> Result<Kinds, String> {
    list(text, &MemoryKind::ALL, MemoryKind::name).map(Kinds)
}

pub(super) fn routes(text: &str) -> Result<Routes, String> {
    list(text, &Route::ALL, Route::name).map(Routes)
}

/// Parses a percentage; more than 100 is allowed.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let number = text.strip_suffix('%').unwrap_or(text).trim_end().parse();
    match number {
        Ok(percent) if (0.0..=1e6).contains(&percent) => Ok(percent),
        _ => Err("must be a percentage of at least 0, such as 5".to_owned()),
    }
}

fn list<T: Copy>(text: &str, all: &[T], name: fn(T) -> &'static str) -> Result<Vec<T>, String> {
    let names: Vec<_> = text.split(',').map(str::trim).collect();
    for wanted in &names {
        if *wanted != "all" && !all.iter().any(|item| name(*item) == *wanted) {
            let known: Vec<_> = all.iter().map(|item| name(*item)).collect();
            let known = known.join(", ");
            return Err(format!(
                "`{wanted}` is unknown; use a comma-separated list of {known}, or all"
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
    fn names_may_come_in_any_order() {
        let Kinds(kinds) = kinds("express, pinned,pinned").expect("known");
        assert_eq!(kinds, [MemoryKind::Pinned, MemoryKind::Express]);
        assert_eq!(routes("all").expect("known").0, Route::ALL);
        assert_eq!(routes("both,all").expect("known").0, Route::ALL);
    }

    #[test]
    fn an_error_lists_the_known_names() {
        for text in ["", "pinned,", "Pinned", "fast", "pinned express"] {
            let error = kinds(text).err().expect("rejected");
            assert!(error.contains("write-combined"), "{text}: {error}");
        }
        assert!(routes("up").is_err());
    }

    #[test]
    fn percentages() {
        assert_eq!(percent("5"), Ok(5.0));
        assert_eq!(percent(" 2.5 %"), Ok(2.5));
        for text in ["", "-1", "nan", "inf", "%", "5%%", "x"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}

//! Reading measured times.

/// Corrects when work started on an engine that does one thing at a time.
///
/// A timing event before a piece of work fires when its stream gets there. If the engine is still busy with
/// other work then, the work starts only after that. `spans` are the start and the end of each piece of work of
/// one engine, in the order in which they ended.
pub fn start_after_previous<'a>(spans: impl IntoIterator<Item = (&'a mut u64, u64)>) {
    let mut free_ns = 0;
    for (start_ns, end_ns) in spans {
        *start_ns = (*start_ns).max(free_ns).min(end_ns);
        free_ns = end_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_starts_when_its_engine_is_free() {
        let mut spans = [(0, 10), (0, 20), (25, 40), (50, 45)];
        start_after_previous(spans.iter_mut().map(|(start, end)| (start, *end)));
        assert_eq!(spans, [(0, 10), (10, 20), (25, 40), (45, 45)]);
    }
}

//! The calls of all processes as a timeline.

use std::collections::BTreeMap;

use pinlane_boost_files::trace::{Event, Operation, Recording, Route};
use pinlane_report::Origin;
use pinlane_report::timeline::{Chart, Span, SpanKind, Timeline, Track};

use super::costs::Costs;
use super::place;

/// A timeline for each process, with a track for each thread. The calls of a simulated run follow each other, each with its
/// computed time: what they took here says nothing about a GPU.
pub(super) fn chart(recordings: &[Recording], costs: &Costs<'_>, origin: Origin) -> Chart {
    let timelines = recordings
        .iter()
        .map(|recording| timeline(recording, costs));
    Chart::new("Calls of the CUDA driver", origin, timelines.collect())
}

fn timeline(recording: &Recording, costs: &Costs<'_>) -> Timeline {
    let mut numbers = Numbers::default();
    let mut ends_ns: BTreeMap<u32, u64> = BTreeMap::new();
    let first_ns = recording.events.first().map_or(0, |event| event.start_ns);
    let span = |event: &Event| {
        let ns = costs.event_ns(event).unwrap_or(0);
        let start_ns = match costs.is_measured {
            true => event.start_ns.saturating_sub(first_ns),
            false => ends_ns.get(&event.thread).copied().unwrap_or(0),
        };
        let end_ns = start_ns.saturating_add(ns);
        ends_ns.insert(event.thread, end_ns);
        let track = match numbers.thread(event.thread) {
            0 => Track::Host,
            number => Track::HostThread(number),
        };
        let frames = recording
            .sites
            .get(event.site as usize)
            .map_or(&[][..], |site| &site.frames);
        Span::new(track, kind(event), start_ns, end_ns)
            .label(place::place(frames))
            .stream(numbers.stream(event.stream))
            .bytes(event.bytes)
    };
    let spans: Vec<Span> = recording.events.iter().map(span).collect();
    let total_ns = spans.iter().map(|span| span.end_ns).max().unwrap_or(0);
    let name = format!("{} (process {})", recording.command, recording.process);
    let empty = || Timeline::new("", 0, Vec::new()).expect("no span can be wrong");
    Timeline::new(name, total_ns, spans).unwrap_or_else(|_| empty())
}

fn kind(event: &Event) -> SpanKind {
    match (event.operation, event.route) {
        (_, Route::Upload) => SpanKind::HostToDevice,
        (_, Route::Download) => SpanKind::DeviceToHost,
        (_, Route::OnDevice) => SpanKind::DeviceToDevice,
        (operation, _) if operation.is_wait() => SpanKind::Wait,
        (Operation::Register | Operation::Unregister, _) => SpanKind::Staging,
        _ => SpanKind::HostWork,
    }
}

/// Small numbers for the system's threads and the driver's streams, in order of their appearance.
#[derive(Default)]
struct Numbers {
    threads: BTreeMap<u32, u32>,
    streams: BTreeMap<u64, u32>,
}

impl Numbers {
    fn thread(&mut self, thread: u32) -> u32 {
        let next = self.threads.len() as u32;
        *self.threads.entry(thread).or_insert(next)
    }

    fn stream(&mut self, stream: u64) -> u32 {
        let next = self.streams.len() as u32;
        *self.streams.entry(stream).or_insert(next)
    }
}

//! Records when each stage of each chunk ran on the device.

use std::sync::Mutex;

use super::error::StageKind;
use pinlane_core::internal::{Touch, lock};
use pinlane_core::{Device, Event, Result, Stream};
use pinlane_model::engine_rules::start_after_previous;

/// When a stage of a chunk ran, in nanoseconds of the device's clock since the run started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StageSpan {
    /// Upload, kernel or download.
    pub stage: StageKind,
    /// The chunk, from 0.
    pub chunk: u64,
    /// The stream, from 0.
    pub stream: usize,
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
}

/// A stream of a run with its number, and the recorder if the run is recorded.
#[derive(Clone, Copy)]
pub(super) struct StageStream<'r> {
    pub(super) stream: &'r Stream,
    pub(super) number: usize,
    pub(super) recorder: Option<&'r Recorder>,
}

impl StageStream<'_> {
    /// Submits a stage of a chunk that uses this memory.
    pub(super) fn submit<R>(
        &self,
        stage: StageKind,
        chunk: u64,
        touches: &[Touch<'_>],
        submit: impl FnOnce(&Stream) -> Result<R>,
    ) -> Result<R> {
        let Some(recorder) = self.recorder else {
            return submit(self.stream);
        };
        // The stage starts when the stream has waited for earlier uses of the memory.
        self.stream.wait_for_uses(touches)?;
        let before = recorder.device.event_with_timing()?;
        let behind = recorder.device.event_with_timing()?;
        self.stream.record(&before)?;
        let result = submit(self.stream)?;
        self.stream.record(&behind)?;
        let span = StageSpan {
            stage,
            chunk,
            stream: self.number,
            start_ns: 0,
            end_ns: 0,
        };
        lock(&recorder.marks).push((span, before, behind));
        Ok(result)
    }
}

/// Records timing events around each stage.
pub(super) struct Recorder {
    device: Device,
    begin: Event,
    /// Stages whose times are not known yet, with the events before and behind them.
    marks: Mutex<Vec<(StageSpan, Event, Event)>>,
}

impl Recorder {
    /// Starts recording. All streams are idle.
    pub(super) fn begin(device: &Device, stream: &Stream) -> Result<Self> {
        let begin = device.event_with_timing()?;
        stream.record(&begin)?;
        Ok(Self {
            device: device.clone(),
            begin,
            marks: Mutex::default(),
        })
    }

    /// All stages, once they are done.
    pub(super) fn end(self) -> Result<Vec<StageSpan>> {
        let at = |event: &Event| -> Result<u64> {
            Ok(u64::try_from(self.begin.elapsed_ns(event)?).unwrap_or(0))
        };
        let mut spans = Vec::new();
        for (span, before, behind) in lock(&self.marks).iter() {
            spans.push(StageSpan {
                start_ns: at(before)?,
                end_ns: at(behind)?,
                ..*span
            });
        }
        correct_starts(&mut spans);
        Ok(spans)
    }
}

/// A stage starts when its engine is free.
fn correct_starts(spans: &mut [StageSpan]) {
    spans.sort_by_key(|span| (span.end_ns, span.chunk));
    for stage in [StageKind::Upload, StageKind::Kernel, StageKind::Download] {
        let of_engine = spans.iter_mut().filter(|span| span.stage == stage);
        start_after_previous(of_engine.map(|span| (&mut span.start_ns, span.end_ns)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_begins_when_its_engine_is_free() {
        let span = |stage, chunk, start_ns, end_ns| StageSpan {
            stage,
            chunk,
            stream: 0,
            start_ns,
            end_ns,
        };
        use StageKind::{Kernel, Upload};
        let mut spans = [
            span(Upload, 1, 0, 20),
            span(Upload, 0, 0, 10),
            span(Kernel, 0, 10, 30),
            span(Upload, 2, 25, 40),
        ];
        correct_starts(&mut spans);
        let starts: Vec<_> = spans
            .iter()
            .map(|span| (span.chunk, span.start_ns))
            .collect();
        assert_eq!(starts, [(0, 0), (1, 10), (0, 10), (2, 25)]);
    }
}

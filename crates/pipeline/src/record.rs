//! When each stage of each chunk was on the device.

use std::sync::{Mutex, PoisonError};

use super::error::StageKind;
use pinlane_core::memory::Touch;
use pinlane_core::{Device, Event, Result, Stream};

/// A stage of a chunk on the device, in nanoseconds of the device's clock since the run began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Recorded {
    /// Upload, kernel or download.
    pub stage: StageKind,
    /// Number of the chunk.
    pub chunk: u64,
    /// Number of the stream.
    pub stream: usize,
    /// When it began.
    pub start_ns: u64,
    /// When it was done.
    pub end_ns: u64,
}

/// A stream of a run, by its number, and who records what it does.
#[derive(Clone, Copy)]
pub(super) struct Track<'r> {
    pub(super) stream: &'r Stream,
    pub(super) number: usize,
    pub(super) recorder: Option<&'r Recorder>,
}

impl Track<'_> {
    /// Submit a stage of a chunk, which touches this memory.
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
        // It begins when the stream has waited for all others that use the memory.
        self.stream.wait_for_uses(touches)?;
        recorder.around(stage, chunk, self, || submit(self.stream))
    }
}

/// Puts events around stages.
pub(super) struct Recorder {
    device: Device,
    begin: Event,
    marks: Mutex<Vec<Mark>>,
}

struct Mark {
    stage: StageKind,
    chunk: u64,
    stream: usize,
    before: Event,
    behind: Event,
}

impl Recorder {
    /// The run begins now, with idle streams.
    pub(super) fn begin(device: &Device, stream: &Stream) -> Result<Self> {
        let begin = device.event_with_timing()?;
        stream.record(&begin)?;
        Ok(Self {
            device: device.clone(),
            begin,
            marks: Mutex::default(),
        })
    }

    /// Do what submits a stage to a stream, between two events.
    fn around<R>(
        &self,
        stage: StageKind,
        chunk: u64,
        track: &Track<'_>,
        submit: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let before = self.device.event_with_timing()?;
        let behind = self.device.event_with_timing()?;
        track.stream.record(&before)?;
        let result = submit()?;
        track.stream.record(&behind)?;
        let mark = Mark {
            stage,
            chunk,
            stream: track.number,
            before,
            behind,
        };
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        marks.push(mark);
        Ok(result)
    }

    /// All stages, when all of them are done.
    pub(super) fn end(self) -> Result<Vec<Recorded>> {
        let marks = self.marks.into_inner();
        let mut spans = marks
            .unwrap_or_else(PoisonError::into_inner)
            .into_iter()
            .map(|mark| {
                let at = |event: &Event| -> Result<u64> {
                    Ok(u64::try_from(self.begin.elapsed_ns(event)?).unwrap_or(0))
                };
                Ok(Recorded {
                    stage: mark.stage,
                    chunk: mark.chunk,
                    stream: mark.stream,
                    start_ns: at(&mark.before)?,
                    end_ns: at(&mark.behind)?,
                })
            })
            .collect::<Result<Vec<_>>>()?;
        begin_behind_the_one_before(&mut spans);
        Ok(spans)
    }
}

/// The event before a stage fires when its stream gets there; if another stream's chunk has the
/// engine then, the stage begins behind that one.
fn begin_behind_the_one_before(spans: &mut [Recorded]) {
    spans.sort_by_key(|span| (span.end_ns, span.chunk));
    for stage in [StageKind::Upload, StageKind::Kernel, StageKind::Download] {
        let mut free_ns = 0;
        for span in spans.iter_mut().filter(|span| span.stage == stage) {
            span.start_ns = span.start_ns.max(free_ns).min(span.end_ns);
            free_ns = span.end_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_begins_when_its_engine_is_free() {
        let span = |stage, chunk, start_ns, end_ns| Recorded {
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
        begin_behind_the_one_before(&mut spans);
        let starts: Vec<_> = spans
            .iter()
            .map(|span| (span.chunk, span.start_ns))
            .collect();
        assert_eq!(starts, [(0, 0), (1, 10), (0, 10), (2, 25)]);
    }
}

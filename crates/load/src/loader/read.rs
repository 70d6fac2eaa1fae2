//! Reading samples into the slot of their batch.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use crate::dataset::SampleMut;
use crate::panic;

use super::OnError;
use super::engine::Engine;
use super::shared_slot::{Run, SamplePlaces};
use super::sheet::{Sheet, Trouble};

/// What a thread keeps from sample to sample.
#[derive(Default)]
pub(super) struct Reader {
    /// Memory for the places of a sample's fields.
    places: SampleMut<'static>,
}

impl Engine {
    /// Work until there is nothing left to do; if not `patient`, only until it would have to wait.
    pub(super) fn work(&self, reader: &mut Reader, patient: bool) {
        while let Some(sheet) = self.sheet(patient) {
            while let Some(mut run) = sheet.slot.claim(self.means.run) {
                let start = Instant::now();
                self.read_run(&sheet, &mut run, reader);
                self.means.counters.read_ns.add_since(start);
                let is_middle = self.means.workers > 1 && run.has_middle();
                if let Some(slot) = run.end() {
                    self.deliver(&sheet, slot);
                }
                if is_middle {
                    self.open_ahead();
                }
            }
        }
    }

    fn read_run(&self, sheet: &Sheet, run: &mut Run<'_>, reader: &mut Reader) {
        while let Some(places) = run.next() {
            // What is not wanted any more is counted as done, unread.
            let unwanted = self.is_abandoned(sheet.number) || sheet.failed_before(places.sample());
            if !unwanted {
                self.read_one(sheet, places, reader);
            }
        }
    }

    fn read_one(&self, sheet: &Sheet, places: SamplePlaces<'_>, reader: &mut Reader) {
        let layout = &*self.means.layout;
        let number = places.sample();
        let index = sheet.samples[number].index;
        let mut sample = std::mem::take(&mut reader.places).recycled();
        for (field, place) in places.fields().enumerate() {
            sample.push(&layout.fields()[field], place);
        }
        sample.seal();
        let dataset = &self.means.dataset;
        let read = catch_unwind(AssertUnwindSafe(|| dataset.read(index, &mut sample)));
        let read = match read {
            Ok(Ok(())) => sheet.keep(layout, number, &sample).map_err(Trouble::Failed),
            Ok(Err(error)) => Err(Trouble::Failed(error)),
            Err(panic) => Err(Trouble::Panicked(panic::text(panic))),
        };
        reader.places = sample.recycled();
        match read {
            Ok(()) => {}
            Err(Trouble::Failed(error)) if self.means.on_error == OnError::Skip => {
                sheet.skip(number, error);
            }
            Err(trouble) => sheet.fail(number, trouble),
        }
    }
}

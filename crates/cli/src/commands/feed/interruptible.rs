//! Stops reading samples on an interrupt.

use std::panic;

use pinlane::load::{Dataset, Field, SampleError, SampleMut};

use crate::interrupt::Interrupt;

/// A dataset that ends the epoch between two samples on an interrupt: a large batch may take minutes.
pub(super) struct Interruptible<D> {
    dataset: D,
    interrupt: Interrupt,
}

impl<D: Dataset> Interruptible<D> {
    pub(super) fn new(dataset: D, interrupt: &Interrupt) -> Self {
        Self {
            dataset,
            interrupt: interrupt.clone(),
        }
    }
}

impl<D: Dataset> Dataset for Interruptible<D> {
    fn len(&self) -> usize {
        self.dataset.len()
    }

    fn fields(&self) -> &[Field] {
        self.dataset.fields()
    }

    fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<(), SampleError> {
        if self.interrupt.is_raised() {
            // With --skip-bad an error would only skip the sample. A panic ends the epoch, and
            // `resume_unwind` does not call the panic hook.
            panic::resume_unwind(Box::new("interrupted"));
        }
        self.dataset.read(index, sample)
    }

    fn origin(&self, index: usize) -> String {
        self.dataset.origin(index)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use pinlane::Device;
    use pinlane::load::{Dtype, Loader, LoaderConfig, LoaderError, OnError, dataset};
    use pinlane_model::Profile;
    use pinlane_sim::Sim;

    use super::*;

    #[test]
    fn an_interrupt_is_noticed_in_the_middle_of_a_batch() {
        let sim = Sim::new(Profile::builtin("pcie3-x16").expect("built in"));
        let device = Device::open(&sim, 0).expect("a device");
        for on_error in [OnError::Fail, OnError::Skip] {
            let (interrupt, raised) = Interrupt::manual();
            let read = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&read);
            let fields = [Field::fixed("a", Dtype::U8, [])];
            let samples = dataset::from_fn(1000, fields, move |index, sample| {
                sample.fixed(0).fill(0);
                count.fetch_add(1, Ordering::Relaxed);
                if index == 10 {
                    raised.store(true, Ordering::Relaxed);
                }
                Ok(())
            });
            let config = LoaderConfig::default()
                .batch(1000)
                .workers(0)
                .on_error(on_error);
            let dataset = Interruptible::new(samples, &interrupt);
            let loader = Loader::new(&device, dataset, config).expect("a loader");
            let mut epoch = loader.epoch(0).expect("an epoch");
            let batch = epoch.next().expect("an outcome");
            assert!(matches!(batch, Err(LoaderError::DatasetPanicked { .. })));
            assert_eq!(read.load(Ordering::Relaxed), 11);
            assert_eq!(loader.stats().skipped, 0);
        }
    }
}

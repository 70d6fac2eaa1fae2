//! A dataset that is easy to check, and a device to load it on.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pinlane::Stream;
use pinlane::load::dataset::{Dataset, Field, SampleError, SampleMut};
use pinlane::load::{Batch, Dtype, Loader, LoaderConfig, LoaderError};

use pinlane_testing::SplitMix64;

/// Samples whose bytes follow from their number. Three fields: `image` (12 bytes), `tokens` (up to 7
/// u16), `label` (one u32), and `text` (up to 5 bytes).
#[derive(Clone)]
pub struct Made {
    samples: usize,
    fields: Vec<Field>,
    pub trouble: Trouble,
    pub reads: Arc<AtomicUsize>,
}

/// Which samples are bad, and how.
#[derive(Clone, Default)]
pub struct Trouble {
    pub fail: BTreeSet<usize>,
    pub panic: BTreeSet<usize>,
    pub forget: BTreeSet<usize>,
    pub half: BTreeSet<usize>,
    pub huge: BTreeSet<usize>,
}

pub const IMAGE: usize = 0;
pub const TOKENS: usize = 1;
pub const LABEL: usize = 2;
pub const TEXT: usize = 3;

impl Made {
    pub fn new(samples: usize) -> Self {
        Self {
            samples,
            fields: vec![
                Field::fixed("image", Dtype::U8, [3, 4]),
                Field::variable("tokens", Dtype::U16, 7),
                Field::fixed("label", Dtype::U32, []),
                Field::variable("text", Dtype::U8, 5),
            ],
            trouble: Trouble::default(),
            reads: Arc::default(),
        }
    }

    pub fn with(samples: usize, trouble: Trouble) -> Self {
        Self {
            trouble,
            ..Self::new(samples)
        }
    }

    /// The bytes of each field of a sample.
    pub fn sample(index: usize) -> [Vec<u8>; 4] {
        let mut random = SplitMix64::new(index as u64);
        let (tokens, text) = (2 * random.index(8), random.index(6));
        let mut bytes = |len: usize| (0..len).map(|_| random.next_u64() as u8).collect();
        [
            bytes(12),
            bytes(tokens),
            (index as u32).to_le_bytes().to_vec(),
            bytes(text),
        ]
    }
}

impl Dataset for Made {
    fn len(&self) -> usize {
        self.samples
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<(), SampleError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let [image, tokens, label, text] = Self::sample(index);
        sample.fixed(IMAGE).copy_from_slice(&image);
        if self.trouble.fail.contains(&index) {
            return Err("broken on purpose".into());
        }
        assert!(
            !self.trouble.panic.contains(&index),
            "sample {index} panics"
        );
        sample.fixed(LABEL).copy_from_slice(&label);
        sample
            .variable(TOKENS, tokens.len())?
            .copy_from_slice(&tokens);
        if self.trouble.half.contains(&index) {
            sample.variable(TOKENS, 3)?;
        }
        if self.trouble.huge.contains(&index) {
            sample.variable(TEXT, 6)?;
        }
        if !self.trouble.forget.contains(&index) {
            sample.variable(TEXT, text.len())?.copy_from_slice(&text);
        }
        Ok(())
    }

    fn origin(&self, index: usize) -> String {
        format!("made.tar/{index}")
    }
}

#[path = "../support/rig.rs"]
mod device;

pub use device::Rig;

impl Rig {
    pub fn loader(&self, dataset: impl Dataset, config: LoaderConfig) -> Loader {
        Loader::new(&self.device, dataset, config).expect("a valid setup")
    }

    /// Nothing is pinned except by the express lane, which the comparison uses.
    #[track_caller]
    pub fn assert_nothing_pinned(&self) {
        let stats = self.device.stats();
        assert_eq!(stats.pinned_bytes, stats.express_bytes);
    }

    /// Check all bytes of a batch.
    #[track_caller]
    pub fn check(&self, batch: &Batch) {
        check(&self.stream, batch).expect("the device is alive");
    }
}

/// Check all bytes of a batch.
#[track_caller]
pub fn check(stream: &Stream, batch: &Batch) -> pinlane::Result<()> {
    let what = format!("{batch:?}");
    let samples: Vec<_> = batch.indices().iter().map(|&i| Made::sample(i)).collect();
    for (at, field) in batch.fields().enumerate() {
        let expected: Vec<u8> = samples
            .iter()
            .flat_map(|sample| sample[at].clone())
            .collect();
        assert_eq!(stream.copy_to_vec(field.bytes())?, expected, "{what}");
        let element = if at == TOKENS { 2 } else { 1 };
        let mut offsets = vec![0];
        offsets.extend(samples.iter().scan(0, |end, sample| {
            *end += (sample[at].len() / element) as u64;
            Some(*end)
        }));
        match field.offsets() {
            None => assert!(at == IMAGE || at == LABEL),
            Some(found) => {
                assert_eq!(found, offsets, "{what}");
                let there = field.device_offsets().expect("as on the host");
                assert_eq!(stream.copy_to_vec(there)?, offsets, "{what}");
                assert_eq!(field.shape(), [offsets[samples.len()] as usize]);
            }
        }
    }
    let [image, label] = [IMAGE, LABEL].map(|at| batch.fields().nth(at).expect("four fields"));
    assert_eq!(image.shape(), [batch.len(), 3, 4]);
    assert_eq!(label.shape(), [batch.len()]);
    let labels = stream.copy_to_vec(label.typed::<u32>().expect("they are u32"))?;
    assert!(
        labels
            .iter()
            .map(|&label| label as usize)
            .eq(batch.indices().iter().copied())
    );
    Ok(())
}

/// Batches of `batch` samples in dataset order, read by `workers` threads.
pub fn config(batch: usize, workers: usize) -> LoaderConfig {
    LoaderConfig::default().batch(batch).workers(Some(workers))
}

/// Indices of all batches, and the final error.
pub fn drain(
    rig: &Rig,
    batches: impl Iterator<Item = Result<Batch, LoaderError>>,
) -> (Vec<Vec<usize>>, Option<LoaderError>) {
    let mut indices = Vec::new();
    let mut error = None;
    for batch in batches {
        assert!(error.is_none(), "it continues after {error:?}");
        match batch {
            Ok(batch) => {
                rig.check(&batch);
                assert_eq!(batch.number() as usize, indices.len());
                indices.push(batch.indices().to_vec());
            }
            Err(failed) => error = Some(failed),
        }
    }
    (indices, error)
}

//! A dataset of images in memory.

use std::sync::Arc;

use pinlane::load::dataset::{Dataset, Field, SampleError, SampleMut};
use pinlane::load::{Dtype, LoaderConfig};

/// Bytes of a 3 × 224 × 224 image.
pub const IMAGE_BYTES: usize = 3 * 224 * 224;

/// Samples in a batch.
pub const BATCH: usize = 256;

const IMAGES: usize = 64 * BATCH;

/// How images are copied into their batch.
#[derive(Clone, Copy, Debug)]
pub enum Stores {
    Plain,
    Streaming,
}

/// Images with labels.
#[derive(Clone)]
pub struct Images {
    pixels: Arc<Vec<u8>>,
    fields: [Field; 2],
    stores: Stores,
}

impl Images {
    pub fn new() -> Self {
        let pixel = |at: usize| (at.wrapping_mul(0x9e37_79b9) >> 13) as u8;
        Self {
            pixels: Arc::new((0..IMAGES * IMAGE_BYTES).map(pixel).collect()),
            fields: [
                Field::fixed("image", Dtype::U8, [3, 224, 224]),
                Field::fixed("label", Dtype::I64, []),
            ],
            stores: Stores::Plain,
        }
    }

    pub fn with(&self, stores: Stores) -> Self {
        Self {
            stores,
            ..self.clone()
        }
    }
}

impl Dataset for Images {
    fn len(&self) -> usize {
        IMAGES
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<(), SampleError> {
        let image = &self.pixels[index * IMAGE_BYTES..][..IMAGE_BYTES];
        match self.stores {
            Stores::Plain => sample.fixed(0).copy_from_slice(image),
            Stores::Streaming => pinlane_kernels::copy_streaming(image, sample.fixed(0)),
        }
        sample.write("label", &[index as i64])
    }
}

pub fn config() -> LoaderConfig {
    LoaderConfig::default().batch(BATCH).shuffle(true)
}

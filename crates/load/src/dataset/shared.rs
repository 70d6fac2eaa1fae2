//! Datasets behind a pointer are datasets.

use std::sync::Arc;

use super::{Dataset, Field, SampleError, SampleMut};

macro_rules! behind {
    ($pointer:ident) => {
        impl<D: Dataset + ?Sized> Dataset for $pointer<D> {
            fn len(&self) -> usize {
                (**self).len()
            }

            fn is_empty(&self) -> bool {
                (**self).is_empty()
            }

            fn fields(&self) -> &[Field] {
                (**self).fields()
            }

            fn read(&self, index: usize, sample: &mut SampleMut<'_>) -> Result<(), SampleError> {
                (**self).read(index, sample)
            }

            fn source(&self, index: usize) -> String {
                (**self).source(index)
            }
        }
    };
}

behind!(Arc);
behind!(Box);

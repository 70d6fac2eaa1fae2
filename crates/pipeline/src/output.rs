//! The output of a pipeline.

use std::io::{self, Write};
use std::marker::PhantomData;

use bytemuck::Pod;

use super::download::{TargetKind, TargetSpec};
use super::input::{check_whole_items, item_bytes};
use pinlane_core::internal::check_align;
use pinlane_core::memory::{DeviceSliceMut, PinnedSliceMut};
use pinlane_core::{DeviceBuf, PinnedBuf, Result};

/// The output of a pipeline: elements of `T`, of which `width` form the result of an item.
pub struct Output<'a, T> {
    target: TargetKind<'a>,
    width: usize,
    elements: PhantomData<T>,
}

impl<'a, T: Pod> Output<'a, T> {
    fn new(target: TargetKind<'a>) -> Self {
        Self {
            target,
            width: 1,
            elements: PhantomData,
        }
    }

    /// Writes the bytes of the results in order, on another thread, and flushes at the end.
    pub fn writer(mut writer: impl Write + Send + 'a) -> Self {
        Self::new(TargetKind::Each(Box::new(move |chunk| match chunk {
            Some(chunk) => writer.write_all(chunk),
            None => writer.flush(),
        })))
    }

    /// Calls `take` with the results of each chunk, in order, on another thread, while later chunks are in
    /// flight.
    pub fn each(mut take: impl FnMut(&[T]) -> io::Result<()> + Send + 'a) -> Self {
        Self::new(TargetKind::Each(Box::new(move |chunk| match chunk {
            Some(chunk) => take(bytemuck::cast_slice(chunk)),
            None => Ok(()),
        })))
    }

    /// Sets how many elements are the result of one item.
    #[must_use]
    pub fn wide(self, width: usize) -> Self {
        Self { width, ..self }
    }

    pub(super) fn into_spec(self) -> Result<TargetSpec<'a>> {
        let item_bytes = item_bytes::<T>(self.width)?;
        if let TargetKind::Each(_) = self.target {
            check_align::<T>()?; // `take` reads from pinned memory
        }
        let spec = TargetSpec {
            target: self.target,
            item_bytes,
        };
        check_whole_items("output", spec.known_bytes(), item_bytes)?;
        Ok(spec)
    }
}

impl<T> std::fmt::Debug for Output<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output")
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}

macro_rules! outputs {
    ($($(#[$docs:meta])* $target:ty: [$($bounds:tt)*], $this:ident => $output:expr;)*) => {
        $(
            $(#[$docs])*
            impl<'a, T: $($bounds)*> From<$target> for Output<'a, T> {
                fn from($this: $target) -> Self {
                    $output
                }
            }
        )*
    };
}

outputs! {
    /// Ordinary memory, copied by the express lane.
    &'a mut [T]: [Pod], slice => Self::new(TargetKind::Pageable(bytemuck::cast_slice_mut(slice)));
    &'a mut Vec<T>: [Pod], vec => Self::from(vec.as_mut_slice());
    /// Pinned memory, written directly by the device.
    PinnedSliceMut<'a, T>: [Pod], slice => Self::new(TargetKind::Pinned(slice.into_bytes()));
    &'a mut PinnedBuf<T>: [Pod + Send], buffer => Self::from(PinnedSliceMut::from(buffer));
    /// Device memory: results stay there.
    DeviceSliceMut<'a, T>: [Pod], slice => Self::new(TargetKind::Device(slice.cast()));
    &'a mut DeviceBuf<T>: [Pod], buffer => Self::from(buffer.whole_mut());
}

//! Copies of pageable memory, by the driver or by the express lane.

use pinlane::{DeviceSlice, DeviceSliceMut, Pod, Result, Stream};

#[derive(Clone, Copy)]
pub(crate) enum Copier {
    Driver,
    Express,
}

impl Copier {
    pub(crate) fn upload<'a, T: Pod>(
        self,
        stream: &Stream,
        source: &[T],
        target: impl Into<DeviceSliceMut<'a, T>>,
    ) -> Result<()> {
        match self {
            Self::Express => stream.copy_to_device(source, target),
            Self::Driver => stream.driver_copy_to_device(source, target),
        }
    }

    pub(crate) fn download<'a, T: Pod>(
        self,
        stream: &Stream,
        source: impl Into<DeviceSlice<'a, T>>,
        target: &mut [T],
    ) -> Result<()> {
        match self {
            Self::Express => stream.copy_to_host(source, target),
            Self::Driver => stream.driver_copy_to_host(source, target),
        }
    }
}

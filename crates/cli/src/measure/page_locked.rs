//! Page-locked memory, which the copy engine reads and writes directly.

use pinlane::{
    Device, Part, PinnedBuf, PinnedTarget, Registered, TransferError, WriteCombinedSink,
};
use pinlane_report::Route;

use super::memory::{BufferPair, HostMemory, take};
use super::rig::{Rig, touched};

pub(super) struct PageLockedMemory<B>(BufferPair<B>);

/// A kind of page-locked buffer.
pub(super) trait PageLockedBuffer: PinnedTarget<u8> + Sized {
    fn allocate(device: &Device, bytes: usize) -> anyhow::Result<Self>;

    /// The first bytes of the buffer.
    fn prefix(self, bytes: usize) -> Part<Self>;

    /// Writes to the start of the buffer.
    fn write(self, values: &[u8]) -> Self;

    /// The contents, if the CPU can read them.
    fn contents(&self) -> Option<&[u8]>;
}

impl<B: PageLockedBuffer> PageLockedMemory<B> {
    pub(super) fn new(buffer: B, rig: &Rig<'_>) -> Self {
        Self(BufferPair::new(buffer.write(&rig.data)))
    }
}

fn ok<T, B: Send + 'static>(result: Result<T, TransferError<B>>) -> anyhow::Result<T> {
    Ok(result.map_err(pinlane::Error::from)?)
}

impl<B: PageLockedBuffer> HostMemory for PageLockedMemory<B> {
    fn copy(&mut self, rig: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<u64> {
        let Self(buffers) = self;
        buffers.allocate_for(route, || B::allocate(rig.device, rig.data.len()))?;
        match route {
            Route::H2d => {
                let source = take(buffers.source())?.prefix(bytes);
                let target = rig.target.range_mut(..bytes);
                let copy = rig.up.timed(&rig.stopwatch).upload(source, target);
                *buffers.source() = Some(ok(ok(copy)?.wait())?.into_whole());
                Ok(rig.stopwatch.elapsed_ns()?)
            }
            Route::D2h => {
                let target = take(buffers.target(route))?.prefix(bytes);
                let source = rig.source.range(..bytes);
                let copy = rig.down.timed(&rig.stopwatch).download(source, target);
                *buffers.target(route) = Some(ok(ok(copy)?.wait())?.into_whole());
                Ok(rig.stopwatch.elapsed_ns()?)
            }
            Route::Both => {
                let source = take(buffers.source())?.prefix(bytes);
                let target = take(buffers.target(route))?.prefix(bytes);
                rig.start(route)?;
                let up = ok(rig.up.upload(source, rig.target.range_mut(..bytes)))?;
                let down = ok(rig.down.download(rig.source.range(..bytes), target))?;
                rig.end(route)?;
                *buffers.source() = Some(ok(up.wait())?.into_whole());
                *buffers.target(route) = Some(ok(down.wait())?.into_whole());
                rig.elapsed_ns()
            }
        }
    }

    fn clear(&mut self, rig: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<()> {
        if route == Route::H2d {
            return Ok(());
        }
        let slot = self.0.target(route);
        if let Some(target) = slot.take() {
            rig.scratch[..bytes].fill(0);
            *slot = Some(target.write(&rig.scratch[..bytes]));
        }
        Ok(())
    }

    fn arrived(&mut self, rig: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<bool> {
        let slot = self.0.target(route);
        if let Some(contents) = slot.as_ref().and_then(PageLockedBuffer::contents) {
            return Ok(contents[..bytes] == rig.data[..bytes]);
        }
        // The CPU cannot read it, but the device can.
        rig.clear(bytes)?;
        let target = rig.target.range_mut(..bytes);
        let copy = ok(rig.up.upload(take(slot)?.prefix(bytes), target))?;
        *slot = Some(ok(copy.wait())?.into_whole());
        rig.arrived(bytes)
    }
}

impl PageLockedBuffer for PinnedBuf<u8> {
    fn allocate(device: &Device, bytes: usize) -> anyhow::Result<Self> {
        Ok(device.pinned(bytes)?)
    }

    fn prefix(self, bytes: usize) -> Part<Self> {
        self.part(..bytes)
    }

    fn write(mut self, values: &[u8]) -> Self {
        self[..values.len()].copy_from_slice(values);
        self
    }

    fn contents(&self) -> Option<&[u8]> {
        Some(self)
    }
}

impl PageLockedBuffer for Registered<Vec<u8>> {
    fn allocate(device: &Device, bytes: usize) -> anyhow::Result<Self> {
        let registered = device.register(touched(bytes)?);
        Ok(registered.map_err(pinlane::Error::from)?)
    }

    fn prefix(self, bytes: usize) -> Part<Self> {
        self.part(..bytes)
    }

    fn write(mut self, values: &[u8]) -> Self {
        self[..values.len()].copy_from_slice(values);
        self
    }

    fn contents(&self) -> Option<&[u8]> {
        Some(self)
    }
}

impl PageLockedBuffer for WriteCombinedSink<u8> {
    fn allocate(device: &Device, bytes: usize) -> anyhow::Result<Self> {
        Ok(device.write_combined(bytes)?.into_sink())
    }

    fn prefix(self, bytes: usize) -> Part<Self> {
        self.part(..bytes)
    }

    fn write(self, values: &[u8]) -> Self {
        let mut buffer = self.into_inner();
        buffer.write(0, values);
        buffer.into_sink()
    }

    fn contents(&self) -> Option<&[u8]> {
        None
    }
}

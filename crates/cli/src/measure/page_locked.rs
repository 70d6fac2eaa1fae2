//! Page-locked memory: the copy engine accesses it directly, and kernels access mapped memory in place.

use anyhow::Context;
use pinlane::{
    MappedBuf, MappedCopies, Part, PinnedBuf, PinnedTarget, Registered, WriteCombinedSink,
};
use pinlane_report::Route;

use super::HostMemory;
use super::device_side::{Rig, touched};

/// A buffer for copies in one direction, and a second one for copies in both. A slot is empty while its
/// buffer is in flight.
struct BufferPair<B> {
    /// Holds the bytes to send. Copies back in one direction bring the same bytes, and land here too.
    first: Option<B>,
    /// The target of copies in both directions, allocated on first use.
    second: Option<B>,
}

impl<B> BufferPair<B> {
    fn new(first: B) -> Self {
        let (first, second) = (Some(first), None);
        Self { first, second }
    }

    /// Allocates the second buffer if the route needs it.
    fn allocate_for(
        &mut self,
        route: Route,
        allocate: impl FnOnce() -> anyhow::Result<B>,
    ) -> anyhow::Result<()> {
        if route == Route::Both && self.second.is_none() {
            self.second = Some(allocate()?);
        }
        Ok(())
    }

    fn target(&mut self, route: Route) -> &mut Option<B> {
        match route {
            Route::Both => &mut self.second,
            Route::H2d | Route::D2h => &mut self.first,
        }
    }
}

fn take<B>(slot: &mut Option<B>) -> anyhow::Result<B> {
    slot.take().context("a failed copy lost its buffer")
}

/// Frees the buffer that a failed call returned, so that only the error is left.
fn ok<T>(result: Result<T, impl Into<pinlane::Error>>) -> anyhow::Result<T> {
    Ok(result.map_err(Into::into)?)
}

/// Memory that the copy engine accesses.
pub(super) struct PageLockedMemory<B>(BufferPair<B>);

impl<B: PageLockedBuffer> PageLockedMemory<B> {
    pub(super) fn allocate(rig: &Rig<'_>) -> anyhow::Result<Box<dyn HostMemory>> {
        Ok(Box::new(Self(BufferPair::new(B::allocate(rig)?))))
    }
}

impl<B: PageLockedBuffer> HostMemory for PageLockedMemory<B> {
    fn fill(&mut self, rig: &Rig<'_>) -> anyhow::Result<()> {
        let buffer = take(&mut self.0.first)?;
        self.0.first = Some(buffer.write(&rig.data));
        Ok(())
    }

    fn copy(&mut self, rig: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<u64> {
        let Self(buffers) = self;
        buffers.allocate_for(route, || B::allocate(rig))?;
        match route {
            Route::H2d => {
                let source = take(&mut buffers.first)?.prefix(bytes);
                let target = rig.target.range_mut(..bytes);
                let copy = rig.up.timed(&rig.stopwatch).upload(source, target);
                buffers.first = Some(ok(ok(copy)?.wait())?.into_whole());
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
                let source = take(&mut buffers.first)?.prefix(bytes);
                let target = take(buffers.target(route))?.prefix(bytes);
                rig.start(route)?;
                let up = ok(rig.up.upload(source, rig.target.range_mut(..bytes)))?;
                let down = ok(rig.down.download(rig.source.range(..bytes), target))?;
                rig.end(route)?;
                buffers.first = Some(ok(up.wait())?.into_whole());
                *buffers.target(route) = Some(ok(down.wait())?.into_whole());
                rig.elapsed_ns()
            }
        }
    }

    fn clear(&mut self, rig: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<()> {
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

pub(super) trait PageLockedBuffer: PinnedTarget<u8> + Sized {
    /// Allocates a buffer for the largest copy.
    fn allocate(rig: &Rig<'_>) -> anyhow::Result<Self>;

    fn prefix(self, bytes: usize) -> Part<Self>;

    fn write(self, values: &[u8]) -> Self;

    /// The contents, if the CPU can read them.
    fn contents(&self) -> Option<&[u8]>;
}

macro_rules! readable_buffer {
    ($buffer:ty, $allocate:expr) => {
        impl PageLockedBuffer for $buffer {
            fn allocate(rig: &Rig<'_>) -> anyhow::Result<Self> {
                $allocate(rig)
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
    };
}

readable_buffer!(PinnedBuf<u8>, |rig: &Rig<'_>| {
    Ok(rig.device.pinned(rig.data.len())?)
});

readable_buffer!(Registered<Vec<u8>>, |rig: &Rig<'_>| {
    ok(rig.device.register(touched(rig.data.len())?))
});

impl PageLockedBuffer for WriteCombinedSink<u8> {
    fn allocate(rig: &Rig<'_>) -> anyhow::Result<Self> {
        Ok(rig.device.write_combined(rig.data.len())?.into_sink())
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

/// Mapped memory, which a kernel reads and writes in place.
pub(super) struct MappedMemory {
    /// Loaded when the memory is filled.
    kernels: Option<MappedCopies>,
    buffers: BufferPair<MappedBuf<u8>>,
}

impl MappedMemory {
    pub(super) fn allocate(rig: &Rig<'_>) -> anyhow::Result<Box<dyn HostMemory>> {
        Ok(Box::new(Self {
            kernels: None,
            buffers: BufferPair::new(rig.device.mapped(rig.data.len())?),
        }))
    }
}

impl HostMemory for MappedMemory {
    fn fill(&mut self, rig: &Rig<'_>) -> anyhow::Result<()> {
        self.kernels = Some(MappedCopies::load(rig.device)?);
        let mut buffer = take(&mut self.buffers.first)?;
        buffer.copy_from_slice(&rig.data);
        self.buffers.first = Some(buffer);
        Ok(())
    }

    fn copy(&mut self, rig: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<u64> {
        let Self { kernels, buffers } = self;
        let kernels = kernels.as_mut().context("memory is not filled")?;
        buffers.allocate_for(route, || Ok(rig.device.mapped(rig.data.len())?))?;
        rig.start_after_delay(route)?;
        let (mut up, mut down) = (None, None);
        if route != Route::D2h {
            let target = rig.target.range_mut(..bytes);
            let source = take(&mut buffers.first)?;
            up = Some(ok(kernels.to_device(&rig.up, source, target))?);
        }
        if route != Route::H2d {
            let source = rig.source.range(..bytes);
            let target = take(buffers.target(route))?;
            down = Some(ok(kernels.to_host(&rig.down, source, target))?);
        }
        rig.end(route)?;
        if let Some(up) = up {
            buffers.first = Some(ok(up.wait())?);
        }
        if let Some(down) = down {
            *buffers.target(route) = Some(ok(down.wait())?);
        }
        rig.elapsed_ns()
    }

    fn clear(&mut self, _: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<()> {
        if let Some(target) = self.buffers.target(route) {
            target[..bytes].fill(0);
        }
        Ok(())
    }

    fn arrived(&mut self, rig: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<bool> {
        let target = self.buffers.target(route).as_ref();
        Ok(target.is_some_and(|target| target[..bytes] == rig.data[..bytes]))
    }
}

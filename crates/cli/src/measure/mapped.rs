//! Mapped memory, which a kernel reads and writes in place.

use pinlane::{MappedBuf, MappedCopies};
use pinlane_report::Route;

use super::memory::{BufferPair, HostMemory, take};
use super::rig::Rig;

pub(super) struct MappedMemory {
    kernels: MappedCopies,
    buffers: BufferPair<MappedBuf<u8>>,
}

impl MappedMemory {
    pub(super) fn new(mut buffer: MappedBuf<u8>, rig: &Rig<'_>) -> anyhow::Result<Self> {
        buffer.copy_from_slice(&rig.data);
        Ok(Self {
            kernels: MappedCopies::load(rig.device)?,
            buffers: BufferPair::new(buffer),
        })
    }
}

impl HostMemory for MappedMemory {
    fn copy(&mut self, rig: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<u64> {
        let Self { kernels, buffers } = self;
        buffers.allocate_for(route, || Ok(rig.device.mapped(rig.data.len())?))?;
        rig.start_after_delay(route)?;
        let (mut up, mut down) = (None, None);
        if route != Route::D2h {
            let target = rig.target.range_mut(..bytes);
            let copy = kernels.to_device(&rig.up, take(buffers.source())?, target);
            up = Some(copy.map_err(pinlane::Error::from)?);
        }
        if route != Route::H2d {
            let source = rig.source.range(..bytes);
            let copy = kernels.to_host(&rig.down, source, take(buffers.target(route))?);
            down = Some(copy.map_err(pinlane::Error::from)?);
        }
        rig.end(route)?;
        if let Some(up) = up {
            *buffers.source() = Some(up.wait().map_err(pinlane::Error::from)?);
        }
        if let Some(down) = down {
            *buffers.target(route) = Some(down.wait().map_err(pinlane::Error::from)?);
        }
        rig.elapsed_ns()
    }

    fn clear(&mut self, _: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<()> {
        if let (Route::D2h | Route::Both, Some(target)) = (route, self.buffers.target(route)) {
            target[..bytes].fill(0);
        }
        Ok(())
    }

    fn arrived(&mut self, rig: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<bool> {
        let target = self.buffers.target(route).as_ref();
        Ok(target.is_some_and(|target| target[..bytes] == rig.data[..bytes]))
    }
}

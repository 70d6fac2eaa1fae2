//! Memory that a kernel reads and writes itself.

use pinlane::{MappedBuf, MappedCopies};
use pinlane_report::Route;

use super::host::Host;
use super::pair::{Pair, take};
use super::wires::Wires;

/// Buffers to be read and written, and the kernels that do it.
pub(super) struct Mapped {
    copies: MappedCopies,
    buffers: Pair<MappedBuf<u8>>,
}

impl Mapped {
    pub(super) fn new(mut buffer: MappedBuf<u8>, wires: &Wires<'_>) -> anyhow::Result<Self> {
        buffer.copy_from_slice(&wires.data);
        Ok(Self {
            copies: MappedCopies::load(wires.device)?,
            buffers: Pair::new(buffer),
        })
    }
}

impl Host for Mapped {
    fn copy(&mut self, wires: &mut Wires<'_>, route: Route, bytes: usize) -> anyhow::Result<u64> {
        let Self { copies, buffers } = self;
        buffers.provide(route, || Ok(wires.device.mapped(wires.data.len())?))?;
        wires.begin_ahead(route)?;
        let (mut up, mut down) = (None, None);
        if route != Route::D2h {
            let target = wires.there.range_mut(..bytes);
            let sent = copies.to_device(&wires.up, take(buffers.outbound())?, target);
            up = Some(sent.map_err(pinlane::Error::from)?);
        }
        if route != Route::H2d {
            let source = wires.back.range(..bytes);
            let sent = copies.to_host(&wires.down, source, take(buffers.inbound(route))?);
            down = Some(sent.map_err(pinlane::Error::from)?);
        }
        wires.end(route)?;
        if let Some(up) = up {
            *buffers.outbound() = Some(up.wait().map_err(pinlane::Error::from)?);
        }
        if let Some(down) = down {
            *buffers.inbound(route) = Some(down.wait().map_err(pinlane::Error::from)?);
        }
        wires.elapsed_ns()
    }

    fn forget(&mut self, _: &mut Wires<'_>, route: Route, bytes: usize) -> anyhow::Result<()> {
        if let (Route::D2h | Route::Both, Some(inbound)) = (route, self.buffers.inbound(route)) {
            inbound[..bytes].fill(0);
        }
        Ok(())
    }

    fn came_back(
        &mut self,
        wires: &mut Wires<'_>,
        route: Route,
        bytes: usize,
    ) -> anyhow::Result<bool> {
        let inbound = self.buffers.inbound(route).as_ref();
        Ok(inbound.is_some_and(|inbound| inbound[..bytes] == wires.data[..bytes]))
    }
}

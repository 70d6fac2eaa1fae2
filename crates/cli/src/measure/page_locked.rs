//! Memory that the copy engine reaches itself.

use pinlane::{
    Device, Part, PinnedBuf, PinnedTarget, Registered, TransferError, WriteCombinedSink,
};
use pinlane_report::Route;

use super::host::Host;
use super::pair::{Pair, take};
use super::wires::{Wires, room};

/// Buffers to be sent and received.
pub(super) struct PageLocked<B>(Pair<B>);

/// A kind of page-locked buffer.
pub(super) trait Buffer: PinnedTarget<u8> {
    /// Another one of this length.
    fn another(device: &Device, bytes: usize) -> anyhow::Result<Self>
    where
        Self: Sized;

    /// The front of it.
    fn front(self, bytes: usize) -> Part<Self>
    where
        Self: Sized;

    /// Write to its front.
    fn write(self, values: &[u8]) -> Self
    where
        Self: Sized;

    /// Its front, where the CPU can read it.
    fn bytes(&self) -> Option<&[u8]>;
}

impl<B: Buffer> PageLocked<B> {
    pub(super) fn new(buffer: B, wires: &Wires<'_>) -> Self {
        Self(Pair::new(buffer.write(&wires.data)))
    }
}

fn went<T, B: Send + 'static>(result: Result<T, TransferError<B>>) -> anyhow::Result<T> {
    Ok(result.map_err(pinlane::Error::from)?)
}

impl<B: Buffer> Host for PageLocked<B> {
    fn copy(&mut self, wires: &mut Wires<'_>, route: Route, bytes: usize) -> anyhow::Result<u64> {
        let Self(buffers) = self;
        buffers.provide(route, || B::another(wires.device, wires.data.len()))?;
        match route {
            Route::H2d => {
                let source = take(buffers.outbound())?.front(bytes);
                let target = wires.there.range_mut(..bytes);
                let sent = wires.up.timed(&wires.stopwatch).upload(source, target);
                *buffers.outbound() = Some(went(went(sent)?.wait())?.into_whole());
                Ok(wires.stopwatch.elapsed_ns()?)
            }
            Route::D2h => {
                let target = take(buffers.inbound(route))?.front(bytes);
                let source = wires.back.range(..bytes);
                let sent = wires.down.timed(&wires.stopwatch).download(source, target);
                *buffers.inbound(route) = Some(went(went(sent)?.wait())?.into_whole());
                Ok(wires.stopwatch.elapsed_ns()?)
            }
            Route::Both => {
                let source = take(buffers.outbound())?.front(bytes);
                let target = take(buffers.inbound(route))?.front(bytes);
                wires.begin(route)?;
                let up = went(wires.up.upload(source, wires.there.range_mut(..bytes)))?;
                let down = went(wires.down.download(wires.back.range(..bytes), target))?;
                wires.end(route)?;
                *buffers.outbound() = Some(went(up.wait())?.into_whole());
                *buffers.inbound(route) = Some(went(down.wait())?.into_whole());
                wires.elapsed_ns()
            }
        }
    }

    fn forget(&mut self, wires: &mut Wires<'_>, route: Route, bytes: usize) -> anyhow::Result<()> {
        if route == Route::H2d {
            return Ok(());
        }
        let place = self.0.inbound(route);
        if let Some(inbound) = place.take() {
            wires.scratch[..bytes].fill(0);
            *place = Some(inbound.write(&wires.scratch[..bytes]));
        }
        Ok(())
    }

    fn came_back(
        &mut self,
        wires: &mut Wires<'_>,
        route: Route,
        bytes: usize,
    ) -> anyhow::Result<bool> {
        let place = self.0.inbound(route);
        if let Some(seen) = place.as_ref().and_then(Buffer::bytes) {
            return Ok(seen[..bytes] == wires.data[..bytes]);
        }
        // The CPU cannot read it, but the device can.
        wires.forget(bytes)?;
        let target = wires.there.range_mut(..bytes);
        let sent = went(wires.up.upload(take(place)?.front(bytes), target))?;
        *place = Some(went(sent.wait())?.into_whole());
        wires.arrived(bytes)
    }
}

impl Buffer for PinnedBuf<u8> {
    fn another(device: &Device, bytes: usize) -> anyhow::Result<Self> {
        Ok(device.pinned(bytes)?)
    }

    fn front(self, bytes: usize) -> Part<Self> {
        self.part(..bytes)
    }

    fn write(mut self, values: &[u8]) -> Self {
        self[..values.len()].copy_from_slice(values);
        self
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(self)
    }
}

impl Buffer for Registered<Vec<u8>> {
    fn another(device: &Device, bytes: usize) -> anyhow::Result<Self> {
        let registered = device.register(room(bytes)?);
        Ok(registered.map_err(pinlane::Error::from)?)
    }

    fn front(self, bytes: usize) -> Part<Self> {
        self.part(..bytes)
    }

    fn write(mut self, values: &[u8]) -> Self {
        self[..values.len()].copy_from_slice(values);
        self
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(self)
    }
}

impl Buffer for WriteCombinedSink<u8> {
    fn another(device: &Device, bytes: usize) -> anyhow::Result<Self> {
        Ok(device.write_combined(bytes)?.into_sink())
    }

    fn front(self, bytes: usize) -> Part<Self> {
        self.part(..bytes)
    }

    fn write(self, values: &[u8]) -> Self {
        let mut buffer = self.into_inner();
        buffer.write(0, values);
        buffer.into_sink()
    }

    fn bytes(&self) -> Option<&[u8]> {
        None
    }
}

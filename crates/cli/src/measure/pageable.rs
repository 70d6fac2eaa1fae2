//! Ordinary memory, which the host copies: with the driver, or with the express lane.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pinlane::{DeviceSlice, DeviceSliceMut, Stream};
use pinlane_report::Route;

use super::host::Host;
use super::wires::Wires;

/// Memory for what comes back, and who copies. What is sent is `data`, memory of the same kind.
pub(super) struct Ordinary {
    lane: Lane,
    inbound: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Lane {
    Driver,
    Express,
}

impl Lane {
    fn up(self, stream: &Stream, from: &[u8], to: DeviceSliceMut<'_, u8>) -> pinlane::Result<()> {
        match self {
            Self::Express => stream.copy_to_device(from, to),
            Self::Driver => stream.driver_copy_to_device(from, to),
        }
    }

    fn down(
        self,
        stream: &Stream,
        from: DeviceSlice<'_, u8>,
        to: &mut [u8],
    ) -> pinlane::Result<()> {
        match self {
            Self::Express => stream.copy_to_host(from, to),
            Self::Driver => stream.driver_copy_to_host(from, to),
        }
    }
}

impl Ordinary {
    pub(super) fn new(express: bool, inbound: Vec<u8>) -> Self {
        let lane = match express {
            true => Lane::Express,
            false => Lane::Driver,
        };
        Self { lane, inbound }
    }

    /// One copy by the driver, whatever else is measured.
    pub(super) fn driver_copy(
        wires: &mut Wires<'_>,
        route: Route,
        bytes: usize,
    ) -> anyhow::Result<u64> {
        let mut driver = Self::new(false, std::mem::take(&mut wires.scratch));
        let copied = driver.copy(wires, route, bytes);
        wires.scratch = driver.inbound;
        copied
    }

    /// Both directions, each by a thread of its own, from the moment that both are running.
    fn both(&mut self, wires: &mut Wires<'_>, bytes: usize) -> anyhow::Result<()> {
        let mut there = std::mem::replace(&mut wires.there, wires.device.alloc(0)?);
        let (ready, go, done) = (Flag::default(), Flag::default(), Flag::default());
        let lane = self.lane;
        let gone = thread::scope(|scope| {
            let (stream, back) = (wires.down.clone(), wires.back.range(..bytes));
            let target = &mut self.inbound[..bytes];
            let (ready, go, done) = (&ready, &go, &done);
            let helper = scope.spawn(move || {
                let _done = RaiseOnDrop(done);
                ready.raise();
                go.wait();
                lane.down(&stream, back, target)
            });
            ready.wait();
            let began = wires.begin(Route::Both);
            go.raise();
            let copied = began.and_then(|()| {
                let target = there.range_mut(..bytes);
                Ok(lane.up(&wires.up, &wires.data[..bytes], target)?)
            });
            // Joining takes a while that belongs to no copy.
            done.wait();
            let ended = wires.end(Route::Both);
            let returned = helper.join().expect("copying does not panic");
            copied.and(ended).and(returned.map_err(Into::into))
        });
        wires.there = there;
        gone
    }
}

/// Something that one thread waits for, wide awake.
#[derive(Default)]
struct Flag(AtomicBool);

impl Flag {
    fn raise(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn wait(&self) {
        while !self.0.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
    }
}

/// Raises a flag whatever happens.
struct RaiseOnDrop<'a>(&'a Flag);

impl Drop for RaiseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.raise();
    }
}

impl Host for Ordinary {
    fn copy(&mut self, wires: &mut Wires<'_>, route: Route, bytes: usize) -> anyhow::Result<u64> {
        match route {
            Route::Both => self.both(wires, bytes)?,
            Route::H2d => {
                wires.begin(route)?;
                let target = wires.there.range_mut(..bytes);
                self.lane.up(&wires.up, &wires.data[..bytes], target)?;
                wires.end(route)?;
            }
            Route::D2h => {
                wires.begin(route)?;
                let source = wires.back.range(..bytes);
                self.lane
                    .down(&wires.down, source, &mut self.inbound[..bytes])?;
                wires.end(route)?;
            }
        }
        let ns = wires.elapsed_ns()?;
        // The next one begins on idle streams.
        wires.up.synchronize()?;
        wires.down.synchronize()?;
        Ok(ns)
    }

    fn forget(&mut self, _: &mut Wires<'_>, _: Route, bytes: usize) -> anyhow::Result<()> {
        self.inbound[..bytes].fill(0);
        Ok(())
    }

    fn came_back(&mut self, wires: &mut Wires<'_>, _: Route, bytes: usize) -> anyhow::Result<bool> {
        Ok(self.inbound[..bytes] == wires.data[..bytes])
    }
}

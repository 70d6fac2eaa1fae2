//! Pageable memory, copied by the driver or by the express lane.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pinlane_report::Route;

use super::HostMemory;
use super::device_side::{Rig, touched};
use crate::driver_or_express_copy::Copier;

/// The target on the host, and who copies. The source is the rig's data, which is pageable too.
pub(super) struct PageableMemory {
    copier: Copier,
    target: Vec<u8>,
}

impl PageableMemory {
    pub(super) fn allocate(copier: Copier, rig: &Rig<'_>) -> anyhow::Result<Box<dyn HostMemory>> {
        let target = touched(rig.data.len())?;
        Ok(Box::new(Self { copier, target }))
    }

    pub(super) fn driver_copy(
        rig: &mut Rig<'_>,
        route: Route,
        bytes: usize,
    ) -> anyhow::Result<u64> {
        let (copier, target) = (Copier::Driver, std::mem::take(&mut rig.scratch));
        let mut driver = Self { copier, target };
        let copied = driver.copy(rig, route, bytes);
        rig.scratch = driver.target;
        copied
    }

    /// Copies in both directions, each on its own thread, timed from when both threads run.
    fn copy_both(&mut self, rig: &mut Rig<'_>, bytes: usize) -> anyhow::Result<()> {
        let mut device_target = std::mem::replace(&mut rig.target, rig.device.alloc(0)?);
        let (ready, go) = (Flag::default(), Flag::default());
        let copier = self.copier;
        let result = thread::scope(|scope| {
            let (stream, source) = (rig.down.clone(), rig.source.range(..bytes));
            let target = &mut self.target[..bytes];
            let (ready, go) = (&ready, &go);
            let helper = scope.spawn(move || {
                ready.raise();
                go.wait();
                copier.download(&stream, source, target)
            });
            ready.wait();
            let started = rig.start(Route::Both);
            go.raise();
            let up = started.and_then(|()| {
                let target = device_target.range_mut(..bytes);
                Ok(copier.upload(&rig.up, &rig.data[..bytes], target)?)
            });
            // The time to join the thread is not part of the copy.
            while !helper.is_finished() {
                std::hint::spin_loop();
            }
            let ended = rig.end(Route::Both);
            let down = helper.join().expect("copying does not panic");
            up.and(ended).and(down.map_err(Into::into))
        });
        rig.target = device_target;
        result
    }
}

/// Lets one thread spin until another one raises the flag.
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

impl HostMemory for PageableMemory {
    fn copy(&mut self, rig: &mut Rig<'_>, route: Route, bytes: usize) -> anyhow::Result<u64> {
        if route == Route::Both {
            self.copy_both(rig, bytes)?;
        } else {
            rig.start(route)?;
            if route == Route::H2d {
                let target = rig.target.range_mut(..bytes);
                self.copier.upload(&rig.up, &rig.data[..bytes], target)?;
            } else {
                let (source, target) = (rig.source.range(..bytes), &mut self.target[..bytes]);
                self.copier.download(&rig.down, source, target)?;
            }
            rig.end(route)?;
        }
        let ns = rig.elapsed_ns()?;
        // The next copy must find idle streams.
        rig.up.synchronize()?;
        rig.down.synchronize()?;
        Ok(ns)
    }

    fn clear(&mut self, _: &mut Rig<'_>, _: Route, bytes: usize) -> anyhow::Result<()> {
        self.target[..bytes].fill(0);
        Ok(())
    }

    fn arrived(&mut self, rig: &mut Rig<'_>, _: Route, bytes: usize) -> anyhow::Result<bool> {
        Ok(self.target[..bytes] == rig.data[..bytes])
    }
}

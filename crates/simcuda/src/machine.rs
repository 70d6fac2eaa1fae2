//! The simulated machine of this process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pinlane_driver::{DeviceInfo, Driver, Platform};
use pinlane_sim::Sim;

use crate::allocations::Allocations;
use crate::context::Context;
use crate::error::{
    ECC_UNCORRECTABLE, INVALID_DEVICE, NO_DEVICE, NOT_INITIALIZED, Outcome, UNKNOWN, ensure,
};
use crate::event::Event;
use crate::handles::Handles;
use crate::mempool::Pool;
use crate::module::{Function, Module};
use crate::primary_context::PrimaryContext;
use crate::settings::{Fail, Settings, settings};
use crate::stream::StreamRef;

/// Everything that `cuInit` creates.
pub struct Machine {
    /// The simulator.
    pub sim: Sim,
    /// The settings from the environment.
    pub settings: &'static Settings,
    /// The devices, by number.
    pub devices: Vec<Device>,
    /// Contexts.
    pub contexts: Handles<Arc<Context>>,
    /// Created streams.
    pub streams: Handles<StreamRef>,
    /// Events.
    pub events: Handles<Event>,
    /// Loaded modules.
    pub modules: Handles<Arc<Module>>,
    /// Kernels that were looked up.
    pub functions: Handles<Arc<Function>>,
    /// Allocated and registered memory.
    pub allocations: Allocations,
    /// The process that called `cuInit`. A forked child cannot use the GPU.
    process: u32,
    calls: AtomicU64,
}

/// One device of the machine.
pub struct Device {
    /// Its properties.
    pub info: DeviceInfo,
    /// Its primary context.
    pub primary: PrimaryContext,
    /// Its default memory pool.
    pub pool: Pool,
    driver: OnceLock<Arc<dyn Driver>>,
}

static MACHINE: OnceLock<Outcome<Machine>> = OnceLock::new();

/// Creates the machine, once. Later calls return the same result.
pub fn initialize() -> Outcome<()> {
    let machine = MACHINE.get_or_init(Machine::new).as_ref();
    machine.map_err(|code| *code)?.check_process()
}

/// The machine; an error before `cuInit`.
pub fn machine() -> Outcome<&'static Machine> {
    let machine = MACHINE.get().ok_or(NOT_INITIALIZED)?.as_ref();
    let machine = machine.map_err(|_| NOT_INITIALIZED)?;
    machine.check_process()?;
    Ok(machine)
}

/// Counts a call. Fails if the settings make the GPU lost by now.
pub fn count_call() -> Outcome<()> {
    let Some(Ok(machine)) = MACHINE.get() else {
        return Ok(());
    };
    machine.calls.fetch_add(1, Ordering::Relaxed);
    ensure(!machine.is_lost(), ECC_UNCORRECTABLE)
}

/// Locks a mutex, even if a thread panicked while it held the lock.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Machine {
    fn new() -> Outcome<Self> {
        let settings = settings().map_err(|_| UNKNOWN)?;
        ensure(settings.devices > 0, NO_DEVICE)?;
        let mut builder = Sim::builder()
            .profile(settings.profile.clone())
            .devices(settings.devices);
        if let Some(seed) = settings.seed {
            builder = builder.seed(seed);
        }
        let sim = builder.build();
        let devices = sim.devices()?.into_iter().map(Device::new).collect();
        Ok(Self {
            sim,
            settings,
            devices,
            contexts: Handles::new(0),
            streams: Handles::new(1),
            events: Handles::new(2),
            modules: Handles::new(3),
            functions: Handles::new(4),
            allocations: Allocations::default(),
            process: std::process::id(),
            calls: AtomicU64::new(0),
        })
    }

    /// The device of this number.
    pub fn device(&self, ordinal: i32) -> Outcome<&Device> {
        let index = usize::try_from(ordinal).map_err(|_| INVALID_DEVICE)?;
        self.devices.get(index).ok_or(INVALID_DEVICE)
    }

    /// The driver of a device, which its first context opens.
    pub fn driver(&self, device: &Device) -> Outcome<Arc<dyn Driver>> {
        if let Some(driver) = device.driver.get() {
            return Ok(driver.clone());
        }
        let opened = self.sim.open(device.info.ordinal)?;
        Ok(device.driver.get_or_init(|| opened).clone())
    }

    /// Whether the settings make the GPU lost by now.
    pub fn is_lost(&self) -> bool {
        match self.settings.fail {
            Fail::LostAfter(calls) => self.calls.load(Ordering::Relaxed) > calls,
            Fail::Never | Fail::Busy => false,
        }
    }

    fn check_process(&self) -> Outcome<()> {
        ensure(self.process == std::process::id(), NOT_INITIALIZED)
    }
}

impl Device {
    fn new(info: DeviceInfo) -> Self {
        Self {
            pool: Pool::new(info.ordinal),
            primary: PrimaryContext::default(),
            driver: OnceLock::new(),
            info,
        }
    }

    /// Its number, as in the driver API.
    pub fn ordinal(&self) -> i32 {
        self.info.ordinal as i32
    }
}

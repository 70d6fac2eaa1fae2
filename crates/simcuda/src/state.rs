//! The simulated machine behind all exported calls of this process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use pinlane_driver::{DeviceInfo, Driver, Platform};
use pinlane_sim::Sim;

use crate::context::Context;
use crate::error::{
    ECC_UNCORRECTABLE, INVALID_DEVICE, NO_DEVICE, NOT_INITIALIZED, Outcome, UNKNOWN,
};
use crate::event::Event;
use crate::handles::Handles;
use crate::ledger::Ledger;
use crate::mempool::Pool;
use crate::module::{Function, Module};
use crate::primary::Primary;
use crate::settings::{Fail, Settings, settings};
use crate::stream::Stream;

/// Everything that `cuInit` makes.
pub struct Machine {
    /// The simulator.
    pub sim: Sim,
    /// What the environment asked for.
    pub settings: &'static Settings,
    /// The devices, by number.
    pub devices: Vec<Device>,
    /// Contexts that exist.
    pub contexts: Handles<Arc<Context>>,
    /// Streams that were created and not destroyed.
    pub streams: Handles<Stream>,
    /// Events that were created and not destroyed.
    pub events: Handles<Event>,
    /// Modules that are loaded.
    pub modules: Handles<Arc<Module>>,
    /// Kernels that were asked for.
    pub functions: Handles<Arc<Function>>,
    /// Who allocated and registered what.
    pub ledger: Ledger,
    /// The process that called `cuInit`: a forked child has no GPU.
    process: u32,
    calls: AtomicU64,
}

/// One device of the machine.
pub struct Device {
    /// What it is.
    pub info: DeviceInfo,
    /// Its primary context.
    pub primary: Primary,
    /// Its default memory pool.
    pub pool: Pool,
    driver: OnceLock<Arc<dyn Driver>>,
}

static MACHINE: OnceLock<Outcome<Machine>> = OnceLock::new();

/// Makes the machine, once. Later calls say the same as the first.
pub fn initialize() -> Outcome<()> {
    let machine = MACHINE.get_or_init(Machine::new).as_ref();
    machine.map_err(|code| *code)?.check_process()
}

/// The machine, once `cuInit` made it.
pub fn machine() -> Outcome<&'static Machine> {
    let machine = MACHINE.get().ok_or(NOT_INITIALIZED)?.as_ref();
    let machine = machine.map_err(|_| NOT_INITIALIZED)?;
    machine.check_process()?;
    Ok(machine)
}

/// Counts a call, and refuses it when the settings say that the GPU is lost by now.
pub fn count_call() -> Outcome<()> {
    match MACHINE.get() {
        Some(Ok(machine)) => {
            machine.calls.fetch_add(1, Ordering::Relaxed);
            if machine.is_lost() {
                return Err(ECC_UNCORRECTABLE);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

impl Machine {
    fn new() -> Outcome<Self> {
        let settings = settings().map_err(|_| UNKNOWN)?;
        if settings.devices == 0 {
            return Err(NO_DEVICE);
        }
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
            ledger: Ledger::default(),
            process: std::process::id(),
            calls: AtomicU64::new(0),
        })
    }

    /// The device of this number.
    pub fn device(&self, ordinal: i32) -> Outcome<&Device> {
        let index = usize::try_from(ordinal).map_err(|_| INVALID_DEVICE)?;
        self.devices.get(index).ok_or(INVALID_DEVICE)
    }

    /// The driver of a device, opened at the first context on it.
    pub fn driver(&self, device: &Device) -> Outcome<Arc<dyn Driver>> {
        if let Some(driver) = device.driver.get() {
            return Ok(driver.clone());
        }
        let opened = self.sim.open(device.info.ordinal)?;
        Ok(device.driver.get_or_init(|| opened).clone())
    }

    /// Whether the settings say that the GPU is lost by now.
    pub fn is_lost(&self) -> bool {
        match self.settings.fail {
            Fail::LostAfter(calls) => self.calls.load(Ordering::Relaxed) > calls,
            Fail::Never | Fail::Busy => false,
        }
    }

    fn check_process(&self) -> Outcome<()> {
        if self.process == std::process::id() {
            Ok(())
        } else {
            Err(NOT_INITIALIZED)
        }
    }
}

impl Device {
    fn new(info: DeviceInfo) -> Self {
        Self {
            pool: Pool::new(info.ordinal),
            primary: Primary::default(),
            driver: OnceLock::new(),
            info,
        }
    }

    /// Its number, as the driver API passes it.
    pub fn ordinal(&self) -> i32 {
        self.info.ordinal as i32
    }
}

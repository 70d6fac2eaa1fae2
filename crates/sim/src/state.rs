//! Everything that the machine knows: the clock, the devices, the tables of handles.

use std::sync::Arc;

use pinlane_driver::{
    Call, Error, ErrorKind, EventHandle, FunctionHandle, ModuleHandle, Result, StreamHandle,
};
use pinlane_kernels::Kernel;
use pinlane_model::engine::{EarliestStart, Engines};

use crate::adversary::Adversary;
use crate::builder::Config;
use crate::callback::Callbacks;
use crate::calls::{cost_ns, name};
use crate::device_memory::DeviceMemory;
use crate::faults::{FaultKind, Injector};
use crate::finding::{Finding, FindingKind};
use crate::host_memory::HostMemory;
use crate::module::Module;
use crate::op::Point;
use crate::run::Running;
use crate::slab::{Id, Slab};
use crate::stream::{Event, Role, Stream};
use crate::timeline::Span;
use crate::trace::Trace;

/// One device.
pub(crate) struct Device {
    /// Why every call fails, once the device is unusable.
    pub(crate) fatal: Option<Error>,
    pub(crate) engines: Engines,
    pub(crate) memory: DeviceMemory,
    pub(crate) default_stream: Id,
    /// What the default stream comes behind of the work of blocking streams.
    pub(crate) blocking_work: EarliestStart,
}

impl Device {
    /// From here on every call fails, no engine works, and what was to be freed is.
    pub(crate) fn kill(&mut self, fatal: Error) {
        self.fatal = Some(fatal);
        self.engines.clear();
        self.memory.drop_freed();
    }
}

/// A kernel of a loaded module.
pub(crate) struct Function {
    pub(crate) device: usize,
    pub(crate) kernel: Arc<Kernel>,
}

/// All of it, under the machine's one lock.
pub(crate) struct State {
    pub(crate) config: Arc<Config>,
    /// The host's virtual clock. Devices are simulated up to it, never beyond.
    pub(crate) now_ns: u64,
    /// While held, nothing starts or completes.
    pub(crate) held: bool,
    pub(crate) devices: Vec<Device>,
    pub(crate) streams: Slab<Stream>,
    pub(crate) events: Slab<Event>,
    pub(crate) modules: Slab<Module>,
    pub(crate) functions: Slab<Function>,
    pub(crate) host: HostMemory,
    /// Streams that hold work, in the order in which they got some.
    pub(crate) active: Vec<Id>,
    pub(crate) running: Vec<Running>,
    /// When streams can go on whose next operation is handed over to another engine.
    pub(crate) alarms: Vec<(u64, Id)>,
    pub(crate) callbacks: Callbacks,
    pub(crate) adversary: Option<Adversary>,
    pub(crate) injector: Injector,
    pub(crate) findings: Vec<Finding>,
    pub(crate) timeline: Vec<Span>,
    pub(crate) trace: Trace,
    /// Threads that sleep until something changes.
    pub(crate) sleepers: usize,
    pub(crate) last_sequence: u64,
    /// Polls since something was submitted or found done.
    pub(crate) polls_in_vain: u32,
}

impl State {
    pub(crate) fn new(config: Arc<Config>) -> Self {
        let mut streams = Slab::new();
        let facts = &config.profile.device;
        let devices = (0..config.devices)
            .map(|ordinal| Device {
                fatal: None,
                engines: Engines::new(&config.profile),
                memory: DeviceMemory::new(ordinal, facts.memory_bytes),
                default_stream: streams.insert(Stream::new(ordinal as usize, Role::Default, 0)),
                blocking_work: EarliestStart::default(),
            })
            .collect();
        Self {
            now_ns: 0,
            held: false,
            devices,
            streams,
            events: Slab::new(),
            modules: Slab::new(),
            functions: Slab::new(),
            host: HostMemory::new(),
            active: Vec::new(),
            running: Vec::new(),
            alarms: Vec::new(),
            callbacks: Callbacks::default(),
            adversary: config.seed.map(Adversary::new),
            injector: Injector::new(config.faults, config.seed.unwrap_or(0)),
            findings: Vec::new(),
            timeline: Vec::new(),
            trace: Trace::default(),
            sleepers: 0,
            last_sequence: 0,
            polls_in_vain: 0,
            config,
        }
    }

    /// The beginning of every call: time passes, the devices catch up, a fault may strike.
    pub(crate) fn enter(&mut self, device: usize, call: Call) -> Result<()> {
        self.spend(cost_ns(call, &self.config.profile.calls));
        if let Some(adversary) = &mut self.adversary {
            let pause_ns = adversary.pause_ns();
            let nudge = adversary.nudges();
            self.spend(pause_ns);
            if nudge {
                self.step();
            }
        }
        self.catch_up();
        for value in [call as u64, device as u64, self.now_ns] {
            self.trace.add(value);
        }
        if self.devices[device].fatal.is_none() && self.injector.hit(FaultKind::LostDevice) {
            let detail = format!("lost in {} (injected)", name(call));
            self.kill(device, ErrorKind::DeviceLost, detail);
        }
        self.alive(device, call)
    }

    /// The error of an unusable device.
    pub(crate) fn alive(&self, device: usize, call: Call) -> Result<()> {
        match &self.devices[device].fatal {
            Some(fatal) => {
                Err(Error::new(fatal.kind.clone(), name(call)).with_detail(fatal.detail.clone()))
            }
            None => Ok(()),
        }
    }

    /// Lets the host's clock run on.
    pub(crate) fn spend(&mut self, ns: u64) {
        self.now_ns = self.now_ns.saturating_add(ns);
    }

    /// Reports misuse, unless the checks are off.
    pub(crate) fn report(
        &mut self,
        kind: FindingKind,
        operation: impl Into<String>,
        detail: impl Into<String>,
    ) {
        if self.config.checks {
            let (operation, detail) = (operation.into(), detail.into());
            self.findings.push(Finding {
                kind,
                operation,
                detail,
            });
        }
    }

    /// The stream of a handle.
    pub(crate) fn stream(&self, device: usize, handle: StreamHandle, call: Call) -> Result<Id> {
        Id::of(handle.raw())
            .filter(|&id| {
                let stream = self.streams.get(id);
                stream.is_some_and(|stream| stream.device == device && !stream.destroyed)
            })
            .ok_or_else(|| invalid_handle(call, "stream", handle.raw()))
    }

    /// The event of a handle.
    pub(crate) fn event(&self, device: usize, handle: EventHandle, call: Call) -> Result<Id> {
        Id::of(handle.raw())
            .filter(|&id| {
                self.events
                    .get(id)
                    .is_some_and(|event| event.device == device)
            })
            .ok_or_else(|| invalid_handle(call, "event", handle.raw()))
    }

    /// The module of a handle.
    pub(crate) fn module(&self, device: usize, handle: ModuleHandle, call: Call) -> Result<Id> {
        Id::of(handle.raw())
            .filter(|&id| {
                self.modules
                    .get(id)
                    .is_some_and(|module| module.device == device)
            })
            .ok_or_else(|| invalid_handle(call, "module", handle.raw()))
    }

    /// The function of a handle.
    pub(crate) fn function(
        &self,
        device: usize,
        handle: FunctionHandle,
        call: Call,
    ) -> Result<&Function> {
        Id::of(handle.raw())
            .and_then(|id| self.functions.get(id))
            .filter(|function| function.device == device)
            .ok_or_else(|| invalid_handle(call, "function", handle.raw()))
    }

    /// Whether a place in a stream is passed. A stream that is gone has done all its work.
    pub(crate) fn passed(&self, point: Point) -> bool {
        self.streams
            .get(point.stream)
            .is_none_or(|stream| stream.is_past(point.sequence))
    }

    /// Whether an event has fired: where it was last recorded is passed, or it never was.
    pub(crate) fn fired(&self, event: Id) -> bool {
        self.events
            .get(event)
            .and_then(|event| event.recorded)
            .is_none_or(|point| self.passed(point))
    }

    /// The end of a stream's work as it is now. For the default stream that includes the work of
    /// the streams that it waits for.
    pub(crate) fn end_of(&self, stream: Id) -> Vec<Point> {
        let point = |id: Id, stream: &Stream| Point {
            stream: id,
            sequence: stream.last(),
        };
        let Some(own) = self.streams.get(stream) else {
            return Vec::new();
        };
        let mut points = vec![point(stream, own)];
        if own.role == Role::Default {
            points.extend(self.active.iter().filter_map(|&id| {
                let other = self.streams.get(id)?;
                (other.device == own.device && other.role == Role::Blocking)
                    .then(|| point(id, other))
            }));
        }
        points
    }

    /// The end of all work of a device as it is now.
    pub(crate) fn end_of_device(&self, device: usize) -> Vec<Point> {
        self.active
            .iter()
            .filter_map(|&id| self.streams.get(id).map(|stream| (id, stream)))
            .filter(|(_, stream)| stream.device == device)
            .map(|(id, stream)| Point {
                stream: id,
                sequence: stream.last(),
            })
            .collect()
    }
}

/// An error that names the handle.
fn invalid_handle(call: Call, what: &str, handle: u64) -> Error {
    Error::new(ErrorKind::InvalidHandle, name(call)).with_detail(format!("{what} {handle:#x}"))
}

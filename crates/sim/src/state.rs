//! The state of the machine: clock, devices, tables of handles.

use std::sync::Arc;

use pinlane_driver::{Call, Error, ErrorKind, Result};
use pinlane_kernels::Kernel;
use pinlane_model::engine_rules::{EarliestStart, Engines};

use crate::adversarial_schedule::Adversary;
use crate::builder::Config;
use crate::callbacks::Callbacks;
use crate::calls::cost_ns;
use crate::checks::{Finding, FindingKind};
use crate::faults::{FaultKind, Injector};
use crate::host_thread_clocks::HostThreads;
use crate::memory::device::DeviceMemory;
use crate::memory::host::HostMemory;
use crate::module::Module;
use crate::run::Running;
use crate::slab::{Id, Slab};
use crate::stream::{Event, Role, Stream, StreamPoint};
use crate::timeline::Span;
use crate::trace_hash::Trace;

/// One device.
pub(crate) struct Device {
    /// The error of every call, once the device is unusable.
    pub(crate) fatal: Option<Error>,
    pub(crate) engines: Engines,
    pub(crate) memory: DeviceMemory,
    pub(crate) default_stream: Id,
    /// The default stream's earliest start after work of blocking streams.
    pub(crate) blocking_work: EarliestStart,
}

/// A kernel of a loaded module.
pub(crate) struct Function {
    pub(crate) device: usize,
    pub(crate) kernel: Kernel,
}

/// The whole state, under the machine's lock.
pub(crate) struct State {
    pub(crate) config: Arc<Config>,
    /// The virtual clock. Devices are simulated up to it; host threads that take part in a run may be ahead.
    pub(crate) now_ns: u64,
    pub(crate) threads: HostThreads,
    /// While held, nothing starts or completes.
    pub(crate) held: bool,
    pub(crate) devices: Vec<Device>,
    pub(crate) streams: Slab<Stream>,
    pub(crate) events: Slab<Event>,
    pub(crate) modules: Slab<Module>,
    pub(crate) functions: Slab<Function>,
    pub(crate) host: HostMemory,
    /// Streams with work, in the order in which they received it.
    pub(crate) active: Vec<Id>,
    pub(crate) running: Vec<Running>,
    /// When streams can proceed whose next operation waits for a hand-over between engines.
    pub(crate) ready_times: Vec<(u64, Id)>,
    pub(crate) callbacks: Callbacks,
    pub(crate) adversary: Option<Adversary>,
    pub(crate) injector: Injector,
    pub(crate) findings: Vec<Finding>,
    pub(crate) timeline: Vec<Span>,
    pub(crate) trace: Trace,
    /// Threads that wait for a change.
    pub(crate) sleepers: usize,
    pub(crate) last_sequence: u64,
    /// Polls since the last submission or completed poll.
    pub(crate) idle_polls: u32,
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
            threads: HostThreads::default(),
            held: false,
            devices,
            streams,
            events: Slab::new(),
            modules: Slab::new(),
            functions: Slab::new(),
            host: HostMemory::default(),
            active: Vec::new(),
            running: Vec::new(),
            ready_times: Vec::new(),
            callbacks: Callbacks::default(),
            adversary: config.seed.map(Adversary::new),
            injector: Injector::new(config.faults, config.seed.unwrap_or(0)),
            findings: Vec::new(),
            timeline: Vec::new(),
            trace: Trace::default(),
            sleepers: 0,
            last_sequence: 0,
            idle_polls: 0,
            config,
        }
    }

    /// The beginning of every call: time passes, devices catch up, a fault may be injected.
    pub(crate) fn enter(&mut self, device: usize, call: Call) -> Result<()> {
        self.spend(cost_ns(call, &self.config.profile.calls));
        if let Some(adversary) = &mut self.adversary {
            let pause_ns = adversary.pause_ns();
            let steps = adversary.steps();
            self.spend(pause_ns);
            if steps {
                self.step();
            }
        }
        self.catch_up();
        for value in [call as u64, device as u64, self.clock_ns()] {
            self.trace.add(value);
        }
        if self.devices[device].fatal.is_none() && self.injector.hit(FaultKind::LostDevice) {
            let detail = format!("lost in {} (injected)", call.name());
            self.kill(device, ErrorKind::DeviceLost, detail);
        }
        self.alive(device, call)
    }

    /// Fails if the device is unusable.
    pub(crate) fn alive(&self, device: usize, call: Call) -> Result<()> {
        match self.devices[device].fatal.clone() {
            Some(fatal) => Err(Error {
                call: call.name(),
                ..fatal
            }),
            None => Ok(()),
        }
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

    /// Whether a point in a stream is passed. A removed stream has done all its work.
    pub(crate) fn passed(&self, point: StreamPoint) -> bool {
        self.streams
            .get(point.stream)
            .is_none_or(|stream| stream.is_past(point.sequence))
    }

    /// The current end of a stream's work. For the default stream, that includes the work of
    /// streams it waits for.
    pub(crate) fn end_of(&self, stream: Id) -> Vec<StreamPoint> {
        let Some(own) = self.streams.get(stream) else {
            return Vec::new();
        };
        let mut points = vec![StreamPoint {
            stream,
            sequence: own.last(),
        }];
        if own.role == Role::Default {
            points.extend(self.active_ends(|it| it.blocks(own)));
        }
        points
    }

    /// The current end of a device's work.
    pub(crate) fn end_of_device(&self, device: usize) -> Vec<StreamPoint> {
        self.active_ends(|stream| stream.device == device).collect()
    }

    /// The ends of streams that have work and fulfil a condition.
    fn active_ends(&self, which: impl Fn(&Stream) -> bool) -> impl Iterator<Item = StreamPoint> {
        let streams = self.active.iter();
        streams.filter_map(move |&id| {
            let stream = self.streams.get(id).filter(|stream| which(stream))?;
            Some(StreamPoint {
                stream: id,
                sequence: stream.last(),
            })
        })
    }
}

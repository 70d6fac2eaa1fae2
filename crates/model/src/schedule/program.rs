//! A program of driver calls, as data.

use crate::engine_rules::EngineKind;
use crate::{Direction, HostKind, Profile};

/// Host threads that submit work to streams. All streams are non-blocking and have the same priority.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// Streams, numbered from 0.
    pub streams: u32,
    /// Events, numbered from 0.
    pub events: u32,
    /// Signals between host threads, numbered from 0.
    pub signals: u32,
    /// Duration of an express copy while one of the other direction runs, in percent of its
    /// duration alone; 100 means that they do not slow each other.
    pub express_both_percent: u64,
    /// Steps of each host thread, in order. All threads start at once.
    pub threads: Vec<Vec<Step>>,
}

/// One step of a host thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// What the thread does.
    pub action: Action,
    /// Copied into the spans of the step; for instance a chunk number.
    pub tag: u32,
}

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Submits work to a stream. As with the real driver, a copy from pageable memory blocks the
    /// thread for the duration of the copy alone, and one to pageable memory until it is done.
    Submit {
        /// The stream.
        stream: u32,
        /// The work.
        work: Work,
    },
    /// Records an event on a stream.
    Record {
        /// The stream.
        stream: u32,
        /// The event.
        event: u32,
    },
    /// Makes a stream wait for the last recording of an event.
    Wait {
        /// The stream.
        stream: u32,
        /// The event.
        event: u32,
    },
    /// Blocks until the last recording of an event has completed.
    AwaitEvent(u32),
    /// Blocks until all work of a stream is done.
    AwaitStream(u32),
    /// Computes.
    HostWork {
        /// Duration.
        ns: u64,
    },
    /// Copies by the express lane, and blocks until that is done. Copies of one direction run one
    /// after the other; the directions slow each other by
    /// [`express_both_percent`](Program::express_both_percent).
    ExpressCopy {
        /// Direction.
        direction: Direction,
        /// Duration alone.
        ns: u64,
    },
    /// Sets a signal: threads that wait for it continue, now or later.
    Signal(u32),
    /// Blocks until another thread sets a signal.
    AwaitSignal(u32),
}

/// Work for the device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Work {
    /// A copy over the link.
    Copy {
        /// Direction.
        direction: Direction,
        /// Kind of host memory.
        kind: HostKind,
        /// Size.
        bytes: u64,
    },
    /// A kernel.
    Kernel {
        /// Time that it takes, alone on the device, beyond that on the engine. Kernels of other streams
        /// can run meanwhile.
        tail_ns: u64,
        /// Time on the engine, excluding its launch.
        ns: u64,
    },
    /// A fill of device memory.
    Fill {
        /// Size.
        bytes: u64,
    },
}

impl Program {
    /// Creates a program without threads.
    #[must_use]
    pub fn new(streams: u32, events: u32, signals: u32) -> Self {
        Self {
            streams,
            events,
            signals,
            express_both_percent: 100,
            threads: Vec::new(),
        }
    }

    /// Adds a host thread and returns its number.
    pub fn thread(&mut self) -> usize {
        self.threads.push(Vec::new());
        self.threads.len() - 1
    }

    /// Adds a step with the tag 0.
    ///
    /// # Panics
    /// If there is no such thread.
    pub fn step(&mut self, thread: usize, action: Action) {
        self.tagged(thread, action, 0);
    }

    /// Adds a step with a tag.
    ///
    /// # Panics
    /// If there is no such thread.
    pub fn tagged(&mut self, thread: usize, action: Action, tag: u32) {
        self.threads[thread].push(Step { action, tag });
    }
}

impl Action {
    /// Host time from the start of the step until it takes effect.
    pub(super) fn cost_ns(self, profile: &Profile) -> u64 {
        let calls = &profile.calls;
        match self {
            Self::Submit { .. } => calls.submit_ns,
            Self::Record { .. } | Self::Wait { .. } => calls.event_ns,
            Self::AwaitEvent(_) | Self::AwaitStream(_) => calls.sync_ns,
            Self::HostWork { ns } => ns,
            Self::ExpressCopy { .. } | Self::Signal(_) | Self::AwaitSignal(_) => 0,
        }
    }
}

impl Work {
    /// The kind of engine that the work needs.
    #[must_use]
    pub fn engine_kind(self) -> EngineKind {
        match self {
            Self::Copy { direction, .. } => match direction {
                Direction::HostToDevice => EngineKind::HostToDevice,
                Direction::DeviceToHost => EngineKind::DeviceToHost,
            },
            Self::Kernel { .. } | Self::Fill { .. } => EngineKind::Compute,
        }
    }

    /// Duration on the engine at full speed.
    #[must_use]
    pub fn alone_ns(self, profile: &Profile) -> u64 {
        match self {
            Self::Copy {
                direction,
                kind,
                bytes,
            } => profile.copy_ns(direction, kind, bytes),
            Self::Kernel { ns, .. } => profile.kernel_ns(0, ns),
            Self::Fill { bytes } => profile.device_copy_ns(bytes),
        }
    }

    /// Time that the work takes, alone on the device, beyond that on its engine.
    pub(super) fn tail_ns(self) -> u64 {
        match self {
            Self::Kernel { tail_ns, .. } => tail_ns,
            Self::Copy { .. } | Self::Fill { .. } => 0,
        }
    }

    /// Whether nothing is queued; the call still takes its time.
    pub(super) fn is_empty(self) -> bool {
        matches!(self, Self::Copy { bytes: 0, .. } | Self::Fill { bytes: 0 })
    }
}

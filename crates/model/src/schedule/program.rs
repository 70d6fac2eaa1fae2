//! A program of driver calls, as data.

use crate::engine::Need;
use crate::{Direction, HostKind, Profile};

/// Host threads that submit work to streams. All streams are non-blocking and of one priority.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// Streams, numbered from 0.
    pub streams: u32,
    /// Events, numbered from 0.
    pub events: u32,
    /// Posts between host threads, numbered from 0.
    pub posts: u32,
    /// While lanes work both ways, each way takes this many percent of its time alone; 100 where
    /// they do not slow each other.
    pub lanes_percent: u64,
    /// Steps of each host thread, in order. All threads start at once.
    pub threads: Vec<Vec<Step>>,
}

/// One step of a host thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// What it does.
    pub action: Action,
    /// Comes out in the spans, for instance the number of a chunk.
    pub tag: u32,
}

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Puts work at the end of a stream. A copy from pageable memory keeps the thread as long as
    /// the copy takes alone, one to pageable memory until it is done, as the driver does.
    Submit {
        /// The stream.
        stream: u32,
        /// The work.
        work: Work,
    },
    /// Records an event at the end of a stream.
    Record {
        /// The stream.
        stream: u32,
        /// The event.
        event: u32,
    },
    /// Has a stream wait for the last recording of an event.
    Wait {
        /// The stream.
        stream: u32,
        /// The event.
        event: u32,
    },
    /// Waits until the last recording of an event has fired.
    AwaitEvent(u32),
    /// Waits until all work of a stream is done.
    AwaitStream(u32),
    /// Computes.
    HostWork {
        /// For so long.
        ns: u64,
    },
    /// Has the lanes move bytes between ordinary memory and a pinned ring, and waits for that.
    /// Both directions at once slow each other as the program's
    /// [`lanes_percent`](Program::lanes_percent) says; work of one direction takes turns.
    Lanes {
        /// Into the ring, or out of it.
        direction: Direction,
        /// How long that takes alone.
        ns: u64,
    },
    /// Lets the threads go on that wait for this post, now or later.
    Post(u32),
    /// Waits for a post of another thread.
    AwaitPost(u32),
}

/// Work for the device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Work {
    /// A copy over the link.
    Copy {
        /// Which way.
        direction: Direction,
        /// What the host end is.
        kind: HostKind,
        /// How much.
        bytes: u64,
    },
    /// A kernel.
    Kernel {
        /// From when its stream gets to it until it has the engine. Kernels of other streams run
        /// meanwhile.
        lead_ns: u64,
        /// What it takes beside that and its launch.
        ns: u64,
    },
    /// A fill of device memory.
    Fill {
        /// How much.
        bytes: u64,
    },
}

impl Program {
    /// A program with so many streams, events and posts, and no thread yet.
    #[must_use]
    pub fn new(streams: u32, events: u32, posts: u32) -> Self {
        Self {
            streams,
            events,
            posts,
            lanes_percent: 100,
            threads: Vec::new(),
        }
    }

    /// Adds a host thread and gives its number.
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
    /// Host time from the beginning of the step until it takes effect.
    pub(super) fn cost_ns(self, profile: &Profile) -> u64 {
        let calls = &profile.calls;
        match self {
            Self::Submit { .. } => calls.submit_ns,
            Self::Record { .. } | Self::Wait { .. } => calls.event_ns,
            Self::AwaitEvent(_) | Self::AwaitStream(_) => calls.sync_ns,
            Self::HostWork { ns } => ns,
            Self::Lanes { .. } | Self::Post(_) | Self::AwaitPost(_) => 0,
        }
    }
}

impl Work {
    /// The kind of engine that it needs.
    #[must_use]
    pub fn need(self) -> Need {
        match self {
            Self::Copy {
                direction: Direction::HostToDevice,
                ..
            } => Need::HostToDevice,
            Self::Copy {
                direction: Direction::DeviceToHost,
                ..
            } => Need::DeviceToHost,
            Self::Kernel { .. } | Self::Fill { .. } => Need::Compute,
        }
    }

    /// What it takes on its engine where nothing slows it.
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

    /// How long its stream is at it before it needs its engine.
    pub(super) fn lead_ns(self) -> u64 {
        match self {
            Self::Kernel { lead_ns, .. } => lead_ns,
            Self::Copy { .. } | Self::Fill { .. } => 0,
        }
    }

    /// Whether there is nothing to do: the call costs its time and no work is queued.
    pub(super) fn is_empty(self) -> bool {
        matches!(self, Self::Copy { bytes: 0, .. } | Self::Fill { bytes: 0 })
    }
}

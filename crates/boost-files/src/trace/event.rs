//! One traced call.

/// Defines an enum that is stored as a byte.
macro_rules! stored_enum {
    (
        $(#[$meta:meta])*
        pub enum $type:ident { $($(#[$variant_meta:meta])* $variant:ident,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum $type { $($(#[$variant_meta])* $variant,)+ }

        impl $type {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The one stored as this byte.
            #[must_use]
            pub fn from_byte(byte: u8) -> Option<Self> {
                Self::ALL.get(usize::from(byte)).copied()
            }
        }
    };
}

stored_enum! {
    /// What a call does.
    pub enum Operation {
        /// Copies one range.
        Copy,
        /// Copies rows of a matrix.
        CopyRows,
        /// Copies a three-dimensional block.
        CopyBlock,
        /// Copies several ranges.
        CopyBatch,
        /// Allocates pinned memory.
        Allocate,
        /// Frees pinned memory.
        Free,
        /// Page-locks ordinary memory.
        Register,
        /// Ends that.
        Unregister,
        /// Waits for a stream.
        WaitForStream,
        /// Waits for an event.
        WaitForEvent,
        /// Waits for everything in a context.
        WaitForContext,
        /// Records an event.
        RecordEvent,
        /// Makes a stream wait for an event.
        StreamWaitsForEvent,
        /// Asks whether an event has happened.
        QueryEvent,
        /// Asks whether a stream is idle.
        QueryStream,
        /// Creates a stream.
        CreateStream,
    }
}

impl Operation {
    /// Whether it copies memory.
    #[must_use]
    pub fn is_copy(self) -> bool {
        self <= Self::CopyBatch
    }

    /// Whether it makes the calling thread wait for the device.
    #[must_use]
    pub fn is_wait(self) -> bool {
        (Self::WaitForStream..=Self::WaitForContext).contains(&self)
    }
}

stored_enum! {
    /// Between which memories a copy goes.
    pub enum Route {
        /// Not a copy, or not known.
        Unknown,
        /// From the host to a device.
        Upload,
        /// From a device to the host.
        Download,
        /// From device to device.
        OnDevice,
        /// From host to host.
        OnHost,
    }
}

stored_enum! {
    /// The kind of a copy's host memory.
    pub enum HostMemory {
        /// There is none, or the driver does not say.
        Unknown,
        /// Ordinary memory.
        Pageable,
        /// Allocated page-locked.
        Pinned,
        /// Allocated page-locked, written past the CPU's caches.
        WriteCombined,
        /// Ordinary memory, page-locked in place.
        Registered,
        /// Managed: it moves between host and device by itself.
        Managed,
    }
}

/// One call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When it began, by the system's monotonic clock.
    pub start_ns: u64,
    /// How long the program waited for it.
    pub ns: u64,
    /// Bytes copied, allocated or registered.
    pub bytes: u64,
    /// The driver's handle of the stream; 0 is the default stream, 2 that of the thread.
    pub stream: u64,
    /// Start of the host memory.
    pub host: u64,
    /// Address on the device, or the handle of an event.
    pub other: u64,
    /// Index of its call site.
    pub site: u32,
    /// The system's number of the thread.
    pub thread: u32,
    /// What it did.
    pub operation: Operation,
    /// Between which memories.
    pub route: Route,
    /// The kind of host memory.
    pub memory: HostMemory,
    /// Whether the program asked for an asynchronous operation.
    pub is_async: bool,
    /// The driver's result; 0 is success.
    pub result: u16,
    /// Kernels and graphs that the thread has launched since its call before.
    pub launches: u16,
}

/// Size of a stored event.
pub(super) const EVENT_WORDS: usize = 8;

impl Event {
    pub(super) fn to_words(self) -> [u64; EVENT_WORDS] {
        let kinds = [
            self.operation as u8,
            self.route as u8,
            self.memory as u8,
            u8::from(self.is_async),
        ];
        [
            self.start_ns,
            self.ns,
            self.bytes,
            self.stream,
            self.host,
            self.other,
            u64::from(self.site) | u64::from(self.thread) << 32,
            u64::from(u32::from_le_bytes(kinds))
                | u64::from(self.result) << 32
                | u64::from(self.launches) << 48,
        ]
    }

    /// `None` for an event that was not stored completely.
    pub(super) fn from_words(words: [u64; EVENT_WORDS]) -> Option<Self> {
        let [start_ns, ns, bytes, stream, host, other, who, what] = words;
        let [operation, route, memory, is_async] = (what as u32).to_le_bytes();
        (start_ns != 0).then_some(())?;
        Some(Self {
            start_ns,
            ns,
            bytes,
            stream,
            host,
            other,
            site: who as u32,
            thread: (who >> 32) as u32,
            operation: Operation::from_byte(operation)?,
            route: Route::from_byte(route)?,
            memory: HostMemory::from_byte(memory)?,
            is_async: is_async != 0,
            result: (what >> 32) as u16,
            launches: (what >> 48) as u16,
        })
    }
}

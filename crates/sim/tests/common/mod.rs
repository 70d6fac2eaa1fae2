//! Shared by the tests: a machine with one device, and short names for common calls.
#![allow(dead_code)] // each test file uses a part of it

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use pinlane_driver::{
    CopyOp, DevicePtr, Driver, EventFlags, EventHandle, FunctionHandle, HostCallback, HostFlags,
    HostPtr, ModuleHandle, Place, Result, StreamFlags, StreamHandle,
};
use pinlane_model::Profile;
use pinlane_sim::{Finding, FindingKind, Sim, SimBuilder};

/// A machine and its first device.
pub struct Rig {
    pub sim: Sim,
    pub driver: TestDriver,
}

/// A simulated device whose calls with handles are safe under the trait's names: a simulated device only
/// looks handles up, and refuses those that are not live.
pub struct TestDriver(Arc<dyn Driver>);

impl Deref for TestDriver {
    type Target = Arc<dyn Driver>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// Defines the calls of `TestDriver` that take handles but no memory.
macro_rules! with_handles {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $value:ty;)*) => {
        impl TestDriver {$(
            pub fn $name(&self, $($arg: $type),*) -> Result<$value> {
                // SAFETY: handles of a simulated device are only looked up, and no callback of the tests
                // calls the driver.
                unsafe { self.0.$name($($arg),*) }
            }
        )*}
    };
}

with_handles! {
    fn device_alloc_async(bytes: usize, stream: StreamHandle) -> DevicePtr;
    fn stream_query(stream: StreamHandle) -> bool;
    fn stream_synchronize(stream: StreamHandle) -> ();
    fn stream_wait_event(stream: StreamHandle, event: EventHandle) -> ();
    fn host_callback(stream: StreamHandle, callback: HostCallback) -> ();
    fn event_record(event: EventHandle, stream: StreamHandle) -> ();
    fn event_query(event: EventHandle) -> bool;
    fn event_synchronize(event: EventHandle) -> ();
    fn event_wait_timeout(event: EventHandle, timeout: Duration) -> bool;
    fn event_elapsed_ns(start: EventHandle, end: EventHandle) -> i64;
    fn module_function(module: ModuleHandle, name: &str) -> FunctionHandle;
}

pub fn profile(name: &str) -> Profile {
    Profile::builtin(name).expect("a built-in profile")
}

/// Size of a small buffer.
pub const BYTES: usize = if cfg!(miri) { 64 } else { 4096 };

/// This many seeds; only a few under miri, which is a thousand times slower.
pub fn seeds(count: u64) -> std::ops::Range<u64> {
    0..if cfg!(miri) { 2 } else { count }
}

/// A plain machine with the default profile.
pub fn plain() -> Rig {
    rig(Sim::builder())
}

/// A machine with the adversary of this seed.
pub fn seeded(seed: u64) -> Rig {
    rig(Sim::builder().seed(seed))
}

pub fn rig(builder: SimBuilder) -> Rig {
    let sim = builder.build();
    let driver = TestDriver(sim.driver());
    Rig { sim, driver }
}

impl Rig {
    pub fn stream(&self) -> StreamHandle {
        self.driver.stream_create(StreamFlags::default()).unwrap()
    }

    pub fn non_blocking_stream(&self) -> StreamHandle {
        let flags = StreamFlags {
            non_blocking: true,
            priority: 0,
        };
        self.driver.stream_create(flags).unwrap()
    }

    pub fn event(&self) -> EventHandle {
        let flags = EventFlags {
            timing: true,
            blocking_sync: false,
        };
        self.driver.event_create(flags).unwrap()
    }

    pub fn pinned(&self, bytes: usize) -> HostPtr {
        self.driver.host_alloc(bytes, HostFlags::default()).unwrap()
    }

    pub fn device(&self, bytes: usize) -> DevicePtr {
        self.driver.device_alloc(bytes).unwrap()
    }

    pub fn upload(
        &self,
        source: HostPtr,
        target: DevicePtr,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<()> {
        let copy = CopyOp {
            target: Place::Device(target),
            source: Place::Host(source),
            bytes,
        };
        // SAFETY: tests pass live ranges. They break the rest of the contract on purpose only, and
        // then the simulator reports it instead of accessing memory.
        unsafe { self.driver.copy_async(copy, stream) }
    }

    pub fn download(
        &self,
        source: DevicePtr,
        target: HostPtr,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<()> {
        let copy = CopyOp {
            target: Place::Host(target),
            source: Place::Device(source),
            bytes,
        };
        // SAFETY: as for `upload`.
        unsafe { self.driver.copy_async(copy, stream) }
    }

    /// Reads device memory by a synchronous copy.
    pub fn device_bytes(&self, source: DevicePtr, bytes: usize) -> Vec<u8> {
        let mut target = vec![0; bytes];
        let copy = CopyOp {
            target: Place::Host(HostPtr::new(target.as_mut_ptr()).unwrap()),
            source: Place::Device(source),
            bytes,
        };
        // SAFETY: the vector is that large, and the call returns when the copy is done.
        unsafe { self.driver.copy(copy).unwrap() };
        target
    }

    pub fn host_free(&self, ptr: HostPtr) -> Result<()> {
        // SAFETY: tests pass results of `pinned`; wrong addresses are only looked up.
        unsafe { self.driver.host_free(ptr) }
    }

    pub fn device_free(&self, ptr: DevicePtr) -> Result<()> {
        // SAFETY: device addresses of a simulated device are only looked up.
        unsafe { self.driver.device_free(ptr) }
    }

    pub fn destroy_stream(&self, stream: StreamHandle) {
        // SAFETY: handles of a simulated device are only looked up.
        unsafe { self.driver.stream_destroy(stream).unwrap() };
    }

    pub fn destroy_event(&self, event: EventHandle) {
        // SAFETY: handles of a simulated device are only looked up.
        unsafe { self.driver.event_destroy(event).unwrap() };
    }
}

/// Sets pinned bytes.
pub fn fill(ptr: HostPtr, bytes: usize, value: u8) {
    // SAFETY: tests pass live pinned memory of at least that size.
    unsafe { ptr.as_ptr().write_bytes(value, bytes) };
}

/// Reads pinned bytes.
pub fn bytes_at(ptr: HostPtr, bytes: usize) -> Vec<u8> {
    let mut copy = vec![0; bytes];
    // SAFETY: tests pass live pinned memory of at least that size.
    unsafe {
        ptr.as_ptr()
            .copy_to_nonoverlapping(copy.as_mut_ptr(), bytes)
    };
    copy
}

pub fn kinds(findings: &[Finding]) -> Vec<FindingKind> {
    findings.iter().map(|finding| finding.kind).collect()
}

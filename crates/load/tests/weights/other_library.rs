//! Another library with device memory and a stream of its own: here, the driver itself.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use pinlane::driver::{CopyOp, Driver, Place, StreamFlags, StreamHandle};
use pinlane::load::{DeviceTarget, TargetRequest};
use pinlane::{Device, DevicePtr, Stream};
use pinlane_sim::Sim;

pub struct Library {
    pub driver: Arc<dyn Driver>,
    pub stream: StreamHandle,
    /// Blocks that are allocated, with their sizes.
    live: Rc<RefCell<HashMap<DevicePtr, usize>>>,
    /// The block that was allocated last.
    pub newest: RefCell<DevicePtr>,
}

/// A block of the library; freed when dropped. Neither `Send` nor `Sync`.
pub struct Block {
    driver: Arc<dyn Driver>,
    live: Rc<RefCell<HashMap<DevicePtr, usize>>>,
    pub ptr: DevicePtr,
}

impl Library {
    pub fn new(sim: &Sim) -> Self {
        let driver = sim.driver();
        let flags = StreamFlags {
            non_blocking: true,
            priority: 0,
        };
        Self {
            stream: driver.stream_create(flags).expect("a stream"),
            driver,
            live: Rc::default(),
            newest: RefCell::new(DevicePtr(0)),
        }
    }

    pub fn stream_of(&self, device: &Device) -> Stream {
        // SAFETY: it outlives the device in these tests.
        unsafe { Stream::from_raw(device, self.stream.raw()) }
    }

    pub fn alloc(&self, bytes: usize) -> Block {
        let ptr = match bytes {
            0 => DevicePtr(0),
            _ => self.driver.device_alloc(bytes).expect("enough memory"),
        };
        if bytes > 0 {
            self.live.borrow_mut().insert(ptr, bytes);
        }
        *self.newest.borrow_mut() = ptr;
        Block {
            driver: Arc::clone(&self.driver),
            live: Rc::clone(&self.live),
            ptr,
        }
    }

    /// A new block for the tensor.
    pub fn target(&self, stream: &Stream, tensor: &TargetRequest<'_>) -> DeviceTarget<Block> {
        let block = self.alloc(tensor.len_bytes());
        // SAFETY: it has so many bytes until it is dropped, and nothing else uses it.
        unsafe { DeviceTarget::from_raw(stream, block.ptr, tensor.len_bytes(), block) }
    }

    /// Bytes of all blocks.
    pub fn live_bytes(&self) -> usize {
        self.live.borrow().values().sum()
    }

    /// Copies device memory on the library's stream.
    pub fn copy(&self, source: DevicePtr, target: DevicePtr, bytes: usize) {
        let copy = CopyOp {
            source: Place::Device(source),
            target: Place::Device(target),
            bytes,
        };
        // SAFETY: blocks of as many bytes, which live until the stream is idle.
        unsafe { self.driver.copy_async(copy, self.stream) }.expect("it is submitted");
    }

    pub fn fill(&self, target: DevicePtr, value: u8, bytes: usize) {
        // SAFETY: a block of as many bytes, which lives until the stream is idle.
        let filled = unsafe { self.driver.memset_async(target, value, bytes, self.stream) };
        filled.expect("it is submitted");
    }

    /// Reads a block behind everything on the library's stream.
    pub fn read(&self, source: DevicePtr, bytes: usize) -> Vec<u8> {
        let mut found = vec![0; bytes];
        if bytes == 0 {
            return found;
        }
        let copy = CopyOp {
            source: Place::Device(source),
            target: Place::Host(std::ptr::NonNull::from(&mut found[0])),
            bytes,
        };
        // SAFETY: both places hold as many bytes until the stream is idle.
        unsafe {
            self.driver.copy_async(copy, self.stream).expect("alive");
            self.driver.stream_synchronize(self.stream).expect("alive");
        }
        found
    }

    pub fn close(self) {
        assert_eq!(self.live_bytes(), 0, "every block is back");
        // SAFETY: nothing uses it any more.
        unsafe { self.driver.stream_destroy(self.stream) }.expect("it is idle");
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.live.borrow_mut().remove(&self.ptr).is_some() {
            // SAFETY: allocated by `Library::alloc`, and dropped only when nothing uses it.
            unsafe { self.driver.device_free(self.ptr) }.expect("it is alive");
        }
    }
}

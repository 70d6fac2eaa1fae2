//! Buffers of each kind.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::marker::PhantomData;

use pinlane_driver::{DevicePtr, HostFlags, HostPtr, Place, RegisterFlags, Result, StreamHandle};

use super::{Resource, Rig};
use crate::Outcome;
use crate::pattern::check_bytes;

/// The page size that the cases assume. On larger pages ranges are only less aligned.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Zeroed pageable memory that starts on a page.
#[derive(PartialEq)]
pub(super) struct Pages {
    base: HostPtr,
    layout: Layout,
}

impl Pages {
    fn new(bytes: usize) -> Self {
        let layout =
            Layout::from_size_align(bytes.max(1), PAGE_BYTES).expect("a size that fits memory");
        // SAFETY: the layout has a size of at least 1.
        let base = unsafe { alloc_zeroed(layout) };
        let base = HostPtr::new(base).unwrap_or_else(|| handle_alloc_error(layout));
        Self { base, layout }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and freed only here.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}

/// Kinds of memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryKind {
    Device,
    Pageable,
    /// Allocated by the driver with default flags.
    Pinned,
    /// Allocated by the driver, write-combined.
    WriteCombined,
    /// Registered in place, not on a page boundary.
    Registered,
}

/// Memory that lives as long as the rig, or until the case frees it.
#[derive(Debug)]
pub(crate) struct Memory<'r>(Span<'r>);

impl Memory<'_> {
    /// The address of byte `offset`.
    pub(crate) fn address(&self, offset: usize) -> u64 {
        match self.0.place {
            Place::Host(ptr) => (ptr.addr().get() + offset) as u64,
            Place::Device(ptr) => ptr.offset(offset).0,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.bytes
    }

    pub(crate) fn all(&self) -> Span<'_> {
        self.0
    }

    pub(crate) fn span(&self, offset: usize, bytes: usize) -> Span<'_> {
        self.0.part(offset, bytes)
    }

    /// Writes to host memory.
    pub(crate) fn write(&self, offset: usize, data: &[u8]) {
        self.span(offset, data.len()).write(data);
    }

    /// Fills host memory.
    pub(crate) fn fill(&self, value: u8) {
        // SAFETY: in bounds of live memory.
        unsafe { self.0.host().write_bytes(value, self.0.bytes) }
    }
}

/// A range of live memory, host or device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<'m> {
    pub(super) place: Place,
    pub(super) bytes: usize,
    memory: PhantomData<&'m ()>,
}

// SAFETY: the memory is not tied to a thread, and one thread uses it at a time.
unsafe impl Send for Span<'_> {}

impl Span<'_> {
    fn new(place: Place, bytes: usize) -> Self {
        Self {
            place,
            bytes,
            memory: PhantomData,
        }
    }

    pub(crate) fn part(self, offset: usize, bytes: usize) -> Self {
        assert!(offset <= self.bytes && bytes <= self.bytes - offset);
        Self::new(self.place.offset(offset), bytes)
    }

    /// The host address.
    pub(crate) fn host(self) -> HostPtr {
        match self.place {
            Place::Host(ptr) => ptr,
            Place::Device(_) => panic!("the span is in device memory"),
        }
    }

    /// Writes to host memory.
    fn write(self, data: &[u8]) {
        assert_eq!(self.bytes, data.len());
        // SAFETY: in bounds of live memory (see the soundness of the rig), and `data` belongs to the
        // case, so they do not overlap.
        unsafe {
            self.host()
                .as_ptr()
                .copy_from_nonoverlapping(data.as_ptr(), self.bytes)
        }
    }

    /// The bytes of host memory.
    fn read(self) -> Vec<u8> {
        let mut out = vec![0u8; self.bytes];
        // SAFETY: in bounds of live memory, and `out` is new, so they do not overlap.
        unsafe {
            self.host()
                .as_ptr()
                .copy_to_nonoverlapping(out.as_mut_ptr(), self.bytes)
        }
        out
    }

    /// The device address. Kernels get nothing else.
    pub(crate) fn device(self) -> DevicePtr {
        match self.place {
            Place::Device(ptr) => ptr,
            Place::Host(_) => panic!("the span is in host memory"),
        }
    }
}

impl Rig {
    /// Takes memory into the list.
    fn track(&self, place: Place, bytes: usize, resource: Resource) -> Memory<'_> {
        self.list().push(resource);
        Memory(Span::new(place, bytes))
    }

    pub(crate) fn device(&self, bytes: usize) -> Result<Memory<'_>> {
        let base = self.device_alloc(bytes)?;
        Ok(self.track(Place::Device(base), bytes, Resource::Device(base)))
    }

    pub(crate) fn device_async(&self, bytes: usize, stream: StreamHandle) -> Result<Memory<'_>> {
        let base = self.device_alloc_async(bytes, stream)?;
        let resource = Resource::DeviceAsync(base, stream);
        Ok(self.track(Place::Device(base), bytes, resource))
    }

    /// Frees device or pinned memory, in stream order if it was allocated that way. The case has
    /// waited for all other work on it.
    pub(crate) fn free_memory(&self, memory: Memory<'_>) -> Result<()> {
        let place = memory.0.place;
        let resource = self.untrack(|resource| match resource {
            Resource::Device(ptr) | Resource::DeviceAsync(ptr, _) => place == Place::Device(*ptr),
            Resource::Pinned(ptr) => place == Place::Host(*ptr),
            _ => false,
        });
        self.free(resource)
    }

    /// Frees stream-ordered memory in another stream than its own.
    pub(crate) fn free_memory_on(&self, memory: Memory<'_>, stream: StreamHandle) -> Result<()> {
        let base = memory.0.device();
        self.untrack(|resource| matches!(resource, Resource::DeviceAsync(ptr, _) if *ptr == base));
        self.free(Resource::DeviceAsync(base, stream))
    }

    /// Zeroed pinned memory.
    pub(crate) fn pinned(&self, bytes: usize) -> Result<Memory<'_>> {
        let memory = self.pinned_with(bytes, HostFlags::default())?;
        memory.fill(0);
        Ok(memory)
    }

    /// Pinned memory with this data.
    pub(crate) fn pinned_from(&self, data: &[u8]) -> Result<Memory<'_>> {
        let memory = self.pinned_with(data.len(), HostFlags::default())?;
        memory.write(0, data);
        Ok(memory)
    }

    pub(crate) fn pinned_with(&self, bytes: usize, flags: HostFlags) -> Result<Memory<'_>> {
        let base = self.host_alloc(bytes, flags)?;
        Ok(self.track(Place::Host(base), bytes, Resource::Pinned(base)))
    }

    /// Pageable memory that starts `offset` bytes into a page.
    pub(crate) fn pageable(&self, bytes: usize, offset: usize) -> Memory<'_> {
        let pages = Pages::new(offset + bytes);
        let place = Place::Host(pages.base).offset(offset);
        self.track(place, bytes, Resource::Pageable(pages))
    }

    /// Registers pageable memory with default flags.
    pub(crate) fn register<'m>(&'m self, memory: &'m Memory<'_>) -> Result<Memory<'m>> {
        self.register_part(memory, 0, memory.bytes(), RegisterFlags::default())
    }

    /// Registers a part of pageable memory.
    pub(crate) fn register_part<'m>(
        &'m self,
        memory: &'m Memory<'_>,
        offset: usize,
        bytes: usize,
        flags: RegisterFlags,
    ) -> Result<Memory<'m>> {
        let base = memory.span(offset, bytes).host();
        // SAFETY: in bounds of memory that the rig frees after unregistering it, since it frees in
        // reverse order.
        unsafe { self.host_register(base, bytes, flags)? };
        Ok(self.track(Place::Host(base), bytes, Resource::Registered(base)))
    }

    /// Unregisters memory. The case has waited for all work on it.
    pub(crate) fn unregister(&self, memory: Memory<'_>) -> Result<()> {
        self.release(Resource::Registered(memory.0.host()))
    }

    /// Memory of any kind.
    pub(crate) fn memory(&self, kind: MemoryKind, bytes: usize) -> Result<Memory<'_>> {
        match kind {
            MemoryKind::Device => self.device(bytes),
            MemoryKind::Pageable => Ok(self.pageable(bytes, 24)),
            MemoryKind::Pinned => self.pinned(bytes),
            MemoryKind::WriteCombined => {
                let flags = HostFlags {
                    write_combined: true,
                    ..HostFlags::default()
                };
                self.pinned_with(bytes, flags)
            }
            MemoryKind::Registered => {
                let memory = self.pageable(bytes, PAGE_BYTES / 2 + 8);
                let place = self.register(&memory)?.0.place;
                Ok(Memory(Span::new(place, bytes)))
            }
        }
    }

    /// New device memory with this data.
    pub(crate) fn upload(&self, data: &[u8]) -> Result<Memory<'_>> {
        let target = self.device(data.len())?;
        self.write(target.all(), data)?;
        Ok(target)
    }

    /// Writes to memory of any kind. The case has waited for all work on it.
    pub(crate) fn write(&self, target: Span<'_>, data: &[u8]) -> Result<()> {
        if let Place::Host(_) = target.place {
            target.write(data);
            return Ok(());
        }
        let pages = Pages::new(data.len());
        let source = Span::new(Place::Host(pages.base), data.len());
        source.write(data);
        self.copy(target, source)
    }

    /// The bytes of memory of any kind. The case has waited for all work on it.
    pub(crate) fn read(&self, source: Span<'_>) -> Result<Vec<u8>> {
        if let Place::Host(_) = source.place {
            return Ok(source.read());
        }
        let pages = Pages::new(source.bytes);
        let target = Span::new(Place::Host(pages.base), source.bytes);
        self.copy(target, source)?;
        Ok(target.read())
    }

    /// Fails the case unless the memory has these bytes. The case has waited for all work on it.
    pub(crate) fn check(&self, memory: Span<'_>, expected: &[u8], what: &str) -> Outcome {
        check_bytes(&self.read(memory)?, expected, what)
    }

    /// Fails the case unless the memory has these words. The case has waited for all work on it.
    pub(crate) fn check_words(&self, memory: Span<'_>, expected: &[u32], what: &str) -> Outcome {
        self.check(memory, bytemuck::cast_slice(expected), what)
    }

    /// Mapped host memory at its device address.
    pub(crate) fn mapped<'m>(&self, memory: &'m Memory<'_>) -> Result<Span<'m>> {
        let ptr = self.host_device_ptr(memory.0.host())?;
        Ok(Span::new(Place::Device(ptr), memory.bytes()))
    }
}

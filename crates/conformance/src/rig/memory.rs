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

/// Host memory that lives as long as the rig, or until the case frees it.
#[derive(Debug)]
pub(crate) struct HostMem<'r> {
    base: HostPtr,
    bytes: usize,
    rig: PhantomData<&'r Rig>,
}

// SAFETY: the memory is not tied to a thread, and one thread uses a `HostMem` at a time.
unsafe impl Send for HostMem<'_> {}

impl HostMem<'_> {
    fn new(base: HostPtr, bytes: usize) -> Self {
        Self {
            base,
            bytes,
            rig: PhantomData,
        }
    }

    pub(crate) fn base(&self) -> HostPtr {
        self.base
    }

    /// The address of byte `offset`.
    pub(crate) fn address(&self, offset: usize) -> u64 {
        (self.base.addr().get() + offset) as u64
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn all(&self) -> Span<'_> {
        Span::new(Place::Host(self.base), self.bytes)
    }

    pub(crate) fn span(&self, offset: usize, bytes: usize) -> Span<'_> {
        self.all().part(offset, bytes)
    }

    pub(crate) fn write(&self, offset: usize, data: &[u8]) {
        let target = self.span(offset, data.len());
        // SAFETY: in bounds of live memory (see the soundness of the rig), and `data` belongs to the
        // case, so they do not overlap.
        unsafe {
            target
                .host()
                .as_ptr()
                .copy_from_nonoverlapping(data.as_ptr(), data.len())
        }
    }

    pub(crate) fn fill(&self, value: u8) {
        // SAFETY: in bounds of live memory.
        unsafe { self.base.write_bytes(value, self.bytes) }
    }

    pub(crate) fn read(&self, offset: usize, bytes: usize) -> Vec<u8> {
        let source = self.span(offset, bytes);
        let mut out = vec![0u8; bytes];
        // SAFETY: in bounds of live memory, and `out` is new, so they do not overlap.
        unsafe {
            source
                .host()
                .as_ptr()
                .copy_to_nonoverlapping(out.as_mut_ptr(), bytes)
        }
        out
    }
}

/// Device memory that lives as long as the rig, or until the case frees it.
#[derive(Debug)]
pub(crate) struct DeviceMem<'r> {
    base: DevicePtr,
    bytes: usize,
    rig: PhantomData<&'r Rig>,
}

impl DeviceMem<'_> {
    pub(crate) fn base(&self) -> DevicePtr {
        self.base
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn all(&self) -> Span<'_> {
        Span::new(Place::Device(self.base), self.bytes)
    }

    pub(crate) fn span(&self, offset: usize, bytes: usize) -> Span<'_> {
        self.all().part(offset, bytes)
    }
}

/// A range of live memory, host or device.
#[derive(Clone, Copy)]
pub(crate) struct Span<'m> {
    pub(super) place: Place,
    pub(super) bytes: usize,
    memory: PhantomData<&'m ()>,
}

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

    fn host(self) -> HostPtr {
        match self.place {
            Place::Host(ptr) => ptr,
            Place::Device(_) => panic!("the span is in device memory"),
        }
    }

    /// The device address. Kernels get nothing else.
    pub(super) fn device(self) -> DevicePtr {
        match self.place {
            Place::Device(ptr) => ptr,
            Place::Host(_) => panic!("the span is in host memory"),
        }
    }
}

impl Rig {
    pub(crate) fn device(&self, bytes: usize) -> Result<DeviceMem<'_>> {
        let base = self.device_alloc(bytes)?;
        Ok(self.device_mem(base, bytes, Resource::Device(base)))
    }

    pub(crate) fn device_async(&self, bytes: usize, stream: StreamHandle) -> Result<DeviceMem<'_>> {
        let base = self.device_alloc_async(bytes, stream)?;
        Ok(self.device_mem(base, bytes, Resource::DeviceAsync(base, stream)))
    }

    fn device_mem(&self, base: DevicePtr, bytes: usize, resource: Resource) -> DeviceMem<'_> {
        self.list().push(resource);
        DeviceMem {
            base,
            bytes,
            rig: PhantomData,
        }
    }

    /// Frees device memory, in stream order if it was allocated that way.
    pub(crate) fn free_device(&self, memory: DeviceMem<'_>) -> Result<()> {
        let resource = self.untrack(
            |resource| matches!(resource, Resource::Device(p) | Resource::DeviceAsync(p, _) if *p == memory.base),
        );
        self.free(resource)
    }

    /// Frees stream-ordered memory in another stream than its own.
    pub(crate) fn free_device_on(&self, memory: DeviceMem<'_>, stream: StreamHandle) -> Result<()> {
        self.untrack(
            |resource| matches!(resource, Resource::DeviceAsync(p, _) if *p == memory.base),
        );
        self.free(Resource::DeviceAsync(memory.base, stream))
    }

    /// Zeroed pinned memory.
    pub(crate) fn pinned(&self, bytes: usize) -> Result<HostMem<'_>> {
        let memory = self.pinned_with(bytes, HostFlags::default())?;
        memory.fill(0);
        Ok(memory)
    }

    /// Pinned memory with this data.
    pub(crate) fn pinned_from(&self, data: &[u8]) -> Result<HostMem<'_>> {
        let memory = self.pinned_with(data.len(), HostFlags::default())?;
        memory.write(0, data);
        Ok(memory)
    }

    pub(crate) fn pinned_with(&self, bytes: usize, flags: HostFlags) -> Result<HostMem<'_>> {
        let base = self.host_alloc(bytes, flags)?;
        self.list().push(Resource::Pinned(base));
        Ok(HostMem::new(base, bytes))
    }

    /// Frees pinned memory. The case has waited for all work on it.
    pub(crate) fn free_pinned(&self, memory: HostMem<'_>) -> Result<()> {
        self.release(Resource::Pinned(memory.base))
    }

    /// Pageable memory that starts `offset` bytes into a page.
    pub(crate) fn pageable(&self, bytes: usize, offset: usize) -> HostMem<'_> {
        let pages = Pages::new(offset + bytes);
        // SAFETY: `offset` is inside the allocation.
        let base = unsafe { pages.base.add(offset) };
        self.list().push(Resource::Pageable(pages));
        HostMem::new(base, bytes)
    }

    /// Registers pageable memory with default flags.
    pub(crate) fn register<'m>(&'m self, memory: &'m HostMem<'_>) -> Result<HostMem<'m>> {
        self.register_part(memory, 0, memory.bytes, RegisterFlags::default())
    }

    /// Registers a part of pageable memory.
    pub(crate) fn register_part<'m>(
        &'m self,
        memory: &'m HostMem<'_>,
        offset: usize,
        bytes: usize,
        flags: RegisterFlags,
    ) -> Result<HostMem<'m>> {
        let base = memory.span(offset, bytes).host();
        // SAFETY: in bounds of memory that the rig frees after unregistering it, since it frees in
        // reverse order.
        unsafe { self.host_register(base, bytes, flags)? };
        self.list().push(Resource::Registered(base));
        Ok(HostMem::new(base, bytes))
    }

    /// Unregisters memory. The case has waited for all work on it.
    pub(crate) fn unregister(&self, memory: HostMem<'_>) -> Result<()> {
        self.release(Resource::Registered(memory.base))
    }

    /// Memory of any kind.
    pub(crate) fn memory(&self, kind: MemoryKind, bytes: usize) -> Result<Span<'_>> {
        let host = match kind {
            MemoryKind::Device => {
                let base = self.device(bytes)?.base;
                return Ok(Span::new(Place::Device(base), bytes));
            }
            MemoryKind::Pageable => self.pageable(bytes, 24).base,
            MemoryKind::Pinned => self.pinned(bytes)?.base,
            MemoryKind::WriteCombined => {
                let flags = HostFlags {
                    write_combined: true,
                    ..HostFlags::default()
                };
                self.pinned_with(bytes, flags)?.base
            }
            MemoryKind::Registered => {
                let memory = self.pageable(bytes, PAGE_BYTES / 2 + 8);
                self.register(&memory)?.base
            }
        };
        Ok(Span::new(Place::Host(host), bytes))
    }

    /// New device memory with this data.
    pub(crate) fn upload(&self, data: &[u8]) -> Result<DeviceMem<'_>> {
        let target = self.device(data.len())?;
        self.write(target.all(), data)?;
        Ok(target)
    }

    /// Writes to memory of any kind. The case has waited for all work on it.
    pub(crate) fn write(&self, target: Span<'_>, data: &[u8]) -> Result<()> {
        if let Place::Host(base) = target.place {
            HostMem::new(base, target.bytes).write(0, data);
            return Ok(());
        }
        let pages = Pages::new(data.len());
        let source = HostMem::new(pages.base, data.len());
        source.write(0, data);
        self.copy(target, source.all())
    }

    /// The bytes of memory of any kind. The case has waited for all work on it.
    pub(crate) fn read(&self, source: Span<'_>) -> Result<Vec<u8>> {
        if let Place::Host(base) = source.place {
            return Ok(HostMem::new(base, source.bytes).read(0, source.bytes));
        }
        let pages = Pages::new(source.bytes);
        let target = HostMem::new(pages.base, source.bytes);
        self.copy(target.all(), source)?;
        Ok(target.read(0, source.bytes))
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
    pub(crate) fn mapped<'m>(&self, memory: &'m HostMem<'_>) -> Result<Span<'m>> {
        let ptr = self.host_device_ptr(memory.base)?;
        Ok(Span::new(Place::Device(ptr), memory.bytes))
    }
}

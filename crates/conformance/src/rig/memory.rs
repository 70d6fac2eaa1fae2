//! Buffers of each kind.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::marker::PhantomData;

use pinlane_driver::{DevicePtr, HostFlags, HostPtr, Place, RegisterFlags, Result, StreamHandle};

use super::{Resource, Rig};

/// The page size that the cases assume. On larger pages ranges are only less aligned.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Zeroed pageable memory that starts on a page.
pub(crate) struct Pages {
    base: HostPtr,
    layout: Layout,
}

// SAFETY: the value owns the memory, like a `Box<[u8]>`.
unsafe impl Send for Pages {}

impl Pages {
    pub(crate) fn new(bytes: usize) -> Self {
        let layout =
            Layout::from_size_align(bytes.max(1), PAGE_BYTES).expect("a size that fits memory");
        // SAFETY: the layout has a size of at least 1.
        let base = unsafe { alloc_zeroed(layout) };
        let base = HostPtr::new(base).unwrap_or_else(|| handle_alloc_error(layout));
        Self { base, layout }
    }

    pub(crate) fn base(&self) -> HostPtr {
        self.base
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and freed only here.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}

/// Kinds of host memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HostKind {
    /// Pageable memory.
    Pageable,
    /// Allocated by the driver with default flags.
    Pinned,
    /// Allocated by the driver, write-combined.
    WriteCombined,
    /// Registered in place, not on a page boundary.
    Registered,
}

/// Host memory that lives as long as the rig, or until the case frees it.
pub(crate) struct HostMem<'r> {
    base: HostPtr,
    bytes: usize,
    rig: PhantomData<&'r Rig>,
}

// SAFETY: the memory is not tied to a thread, and one thread uses a `HostMem` at a time.
unsafe impl Send for HostMem<'_> {}

impl<'r> HostMem<'r> {
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
        self.span(0, self.bytes)
    }

    pub(crate) fn span(&self, offset: usize, bytes: usize) -> Span<'_> {
        assert!(offset <= self.bytes && bytes <= self.bytes - offset);
        Span::new(Place::Host(self.base).offset(offset), bytes)
    }

    pub(crate) fn write(&self, offset: usize, data: &[u8]) {
        assert!(offset <= self.bytes && data.len() <= self.bytes - offset);
        // SAFETY: in bounds of live memory (see the soundness of the rig), and `data` belongs to the
        // case, so they do not overlap.
        unsafe {
            self.base
                .add(offset)
                .as_ptr()
                .copy_from_nonoverlapping(data.as_ptr(), data.len());
        }
    }

    pub(crate) fn fill(&self, value: u8) {
        // SAFETY: in bounds of live memory.
        unsafe { self.base.write_bytes(value, self.bytes) }
    }

    pub(crate) fn read(&self, offset: usize, bytes: usize) -> Vec<u8> {
        assert!(offset <= self.bytes && bytes <= self.bytes - offset);
        let mut out = vec![0u8; bytes];
        // SAFETY: in bounds of live memory, and `out` is new, so they do not overlap.
        unsafe {
            self.base
                .add(offset)
                .as_ptr()
                .copy_to_nonoverlapping(out.as_mut_ptr(), bytes);
        }
        out
    }

    pub(crate) fn read_all(&self) -> Vec<u8> {
        self.read(0, self.bytes)
    }
}

/// Device memory that lives as long as the rig, or until the case frees it.
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
        self.span(0, self.bytes)
    }

    pub(crate) fn span(&self, offset: usize, bytes: usize) -> Span<'_> {
        assert!(offset <= self.bytes && bytes <= self.bytes - offset);
        Span::new(Place::Device(self.base.offset(offset)), bytes)
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
        let base = self.driver().device_alloc(bytes)?;
        self.track(Resource::Device(base));
        Ok(DeviceMem {
            base,
            bytes,
            rig: PhantomData,
        })
    }

    pub(crate) fn device_async(&self, bytes: usize, stream: StreamHandle) -> Result<DeviceMem<'_>> {
        let base = self.driver().device_alloc_async(bytes, stream)?;
        self.track(Resource::DeviceAsync(base, stream));
        Ok(DeviceMem {
            base,
            bytes,
            rig: PhantomData,
        })
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

    pub(crate) fn pinned(&self, bytes: usize, flags: HostFlags) -> Result<HostMem<'_>> {
        let base = self.driver().host_alloc(bytes, flags)?;
        self.track(Resource::Pinned(base));
        Ok(HostMem::new(base, bytes))
    }

    /// Frees pinned memory. The case has waited for all work on it.
    pub(crate) fn free_pinned(&self, memory: HostMem<'_>) -> Result<()> {
        let resource =
            self.untrack(|resource| matches!(resource, Resource::Pinned(p) if *p == memory.base));
        self.free(resource)
    }

    /// Pageable memory that starts `offset` bytes into a page.
    pub(crate) fn pageable(&self, bytes: usize, offset: usize) -> HostMem<'_> {
        let pages = Pages::new(offset + bytes);
        // SAFETY: `offset` is inside the allocation.
        let base = unsafe { pages.base().add(offset) };
        self.track(Resource::Pageable(pages));
        HostMem::new(base, bytes)
    }

    /// Registers a part of pageable memory.
    pub(crate) fn register<'m>(
        &'m self,
        memory: &'m HostMem<'_>,
        offset: usize,
        bytes: usize,
        flags: RegisterFlags,
    ) -> Result<HostMem<'m>> {
        assert!(offset <= memory.bytes && bytes <= memory.bytes - offset);
        // SAFETY: in bounds of memory that the rig frees after unregistering it, since it frees in
        // reverse order.
        let base = unsafe {
            let base = memory.base.add(offset);
            self.driver().host_register(base, bytes, flags)?;
            base
        };
        self.track(Resource::Registered(base));
        Ok(HostMem::new(base, bytes))
    }

    /// Unregisters memory. The case has waited for all work on it.
    pub(crate) fn unregister(&self, memory: HostMem<'_>) -> Result<()> {
        let resource = self
            .untrack(|resource| matches!(resource, Resource::Registered(p) if *p == memory.base));
        self.free(resource)
    }

    /// Host memory of any kind.
    pub(crate) fn host(&self, kind: HostKind, bytes: usize) -> Result<HostMem<'_>> {
        match kind {
            HostKind::Pageable => Ok(self.pageable(bytes, 24)),
            HostKind::Pinned => self.pinned(bytes, HostFlags::default()),
            HostKind::WriteCombined => self.pinned(
                bytes,
                HostFlags {
                    write_combined: true,
                    ..HostFlags::default()
                },
            ),
            HostKind::Registered => {
                let memory = self.pageable(bytes, PAGE_BYTES / 2 + 8);
                let registered = self.register(&memory, 0, bytes, RegisterFlags::default())?;
                Ok(HostMem::new(registered.base, bytes))
            }
        }
    }

    /// New device memory with this data.
    pub(crate) fn upload(&self, data: &[u8]) -> Result<DeviceMem<'_>> {
        let source = self.pageable(data.len(), 0);
        source.write(0, data);
        let target = self.device(data.len())?;
        self.copy(target.all(), source.all())?;
        Ok(target)
    }

    /// The bytes of device memory. The case has waited for all work on it.
    pub(crate) fn download(&self, source: Span<'_>) -> Result<Vec<u8>> {
        let pages = Pages::new(source.bytes);
        let target = HostMem::new(pages.base(), source.bytes);
        self.copy(target.all(), source)?;
        Ok(target.read_all())
    }

    /// Mapped host memory at its device address.
    pub(crate) fn mapped<'m>(&self, memory: &'m HostMem<'_>) -> Result<Span<'m>> {
        let ptr = self.driver().host_device_ptr(memory.base)?;
        Ok(Span::new(Place::Device(ptr), memory.bytes))
    }
}

//! Device memory: real bytes at virtual addresses.
//!
//! Addresses are never reused, so that every use of freed memory is detected. Chunks are allocated on
//! first write: a device of a hundred GiB costs nothing until it is used. Unwritten memory reads as
//! a fixed pattern.

use std::collections::BTreeMap;

use pinlane_driver::DevicePtr;
use pinlane_kernels::MemoryFault;

/// Higher than any address of a process, so that device and host addresses never collide.
const FIRST_ADDRESS: u64 = 1 << 52;
/// Address space of one device.
const SPAN_BYTES: u64 = 1 << 46;
const ALIGN_BYTES: u64 = 512;
/// Gap between blocks, so that an overrun does not reach the next one.
const GAP_BYTES: u64 = 512;
const CHUNK_BYTES: usize = 1 << 20;
static POISON: [u8; 4096] = [0xcb; 4096];

/// How a block was allocated, and so must be freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BlockKind {
    Plain,
    StreamOrdered,
}

/// Life cycle of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BlockState {
    /// Its stream has not reached the allocation.
    AllocQueued,
    Live,
    /// Freed in stream order, but its stream has not reached that.
    FreeQueued,
}

/// One allocation.
pub(crate) struct Block {
    pub(crate) bytes: u64,
    pub(crate) kind: BlockKind,
    pub(crate) state: BlockState,
    chunks: Vec<Option<Box<[u8]>>>,
}

/// The memory of one device.
pub(crate) struct DeviceMemory {
    base: u64,
    next: u64,
    pub(crate) capacity_bytes: u64,
    used_bytes: u64,
    blocks: BTreeMap<u64, Block>,
}

/// The device whose memory an address belongs to, whether allocated or not.
pub(crate) fn device_of(address: u64) -> Option<usize> {
    let offset = address.checked_sub(FIRST_ADDRESS)?;
    usize::try_from(offset / SPAN_BYTES).ok()
}

impl DeviceMemory {
    pub(crate) fn new(ordinal: u32, capacity_bytes: u64) -> Self {
        let base = FIRST_ADDRESS + u64::from(ordinal) * SPAN_BYTES;
        Self {
            base,
            next: base,
            capacity_bytes,
            used_bytes: 0,
            blocks: BTreeMap::new(),
        }
    }

    pub(crate) fn free_bytes(&self) -> u64 {
        self.capacity_bytes - self.used_bytes
    }

    /// Allocates a block; `None` if the device is full.
    pub(crate) fn alloc(&mut self, bytes: u64, kind: BlockKind) -> Option<u64> {
        let rounded = bytes.checked_next_multiple_of(ALIGN_BYTES)?;
        if rounded > self.free_bytes() || rounded + GAP_BYTES > self.base + SPAN_BYTES - self.next {
            return None;
        }
        let address = self.next;
        self.next += rounded + GAP_BYTES;
        self.used_bytes += rounded;
        let state = match kind {
            BlockKind::Plain => BlockState::Live,
            BlockKind::StreamOrdered => BlockState::AllocQueued,
        };
        let chunks = bytes.div_ceil(CHUNK_BYTES as u64) as usize;
        let block = Block {
            bytes,
            kind,
            state,
            chunks: std::iter::repeat_with(|| None).take(chunks).collect(),
        };
        self.blocks.insert(address, block);
        Some(address)
    }

    /// Frees the block that begins at `address`.
    pub(crate) fn remove(&mut self, address: u64) -> Option<Block> {
        let block = self.blocks.remove(&address)?;
        self.used_bytes -= block.bytes.next_multiple_of(ALIGN_BYTES);
        Some(block)
    }

    /// Frees all blocks with a pending stream-ordered free.
    pub(crate) fn drop_freed(&mut self) {
        let queued = |(_, block): &(u64, &Block)| block.state == BlockState::FreeQueued;
        let freed: Vec<u64> = self.iter().filter(queued).map(|(base, _)| base).collect();
        for base in freed {
            self.remove(base);
        }
    }

    /// The block that begins at `address`.
    pub(crate) fn at(&mut self, address: u64) -> Option<&mut Block> {
        self.blocks.get_mut(&address)
    }

    /// The block that contains all `bytes` from `address`, and its base.
    pub(crate) fn find(&self, address: u64, bytes: u64) -> Option<(u64, &Block)> {
        let (&base, block) = self.blocks.range(..=address).next_back()?;
        let end = address.checked_add(bytes)?;
        (address < base + block.bytes && end <= base + block.bytes).then_some((base, block))
    }

    /// Whether this address was allocated once, and is not now.
    pub(crate) fn was_freed(&self, address: u64) -> bool {
        (self.base..self.next).contains(&address) && self.find(address, 0).is_none()
    }

    /// All blocks, by address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Block)> {
        self.blocks.iter().map(|(&base, block)| (base, block))
    }

    /// The block of an access, and its base.
    fn access(&self, address: u64, bytes: usize) -> Result<(u64, &Block), MemoryFault> {
        let address = DevicePtr(address);
        self.find(address.0, bytes as u64)
            .ok_or(MemoryFault { address, bytes })
    }

    /// Passes the bytes from `address` to `sink`, in parts with their offsets.
    pub(crate) fn read(
        &self,
        address: u64,
        bytes: usize,
        mut sink: impl FnMut(usize, &[u8]),
    ) -> Result<(), MemoryFault> {
        let (base, block) = self.access(address, bytes)?;
        let first = (address - base) as usize;
        let mut done = 0;
        while done < bytes {
            let (chunk, offset) = ((first + done) / CHUNK_BYTES, (first + done) % CHUNK_BYTES);
            let mut step = (bytes - done).min(CHUNK_BYTES - offset);
            match &block.chunks[chunk] {
                Some(stored) => sink(done, &stored[offset..offset + step]),
                None => {
                    step = step.min(POISON.len());
                    sink(done, &POISON[..step]);
                }
            }
            done += step;
        }
        Ok(())
    }

    /// Lets `source` write the bytes from `address`, in parts with their offsets.
    pub(crate) fn write(
        &mut self,
        address: u64,
        bytes: usize,
        mut source: impl FnMut(usize, &mut [u8]),
    ) -> Result<(), MemoryFault> {
        let (base, _) = self.access(address, bytes)?;
        let block = self.blocks.get_mut(&base).expect("the block found");
        let first = (address - base) as usize;
        let mut done = 0;
        while done < bytes {
            let (chunk, offset) = ((first + done) / CHUNK_BYTES, (first + done) % CHUNK_BYTES);
            let step = (bytes - done).min(CHUNK_BYTES - offset);
            let chunk_bytes = CHUNK_BYTES.min(block.bytes as usize - chunk * CHUNK_BYTES);
            let stored = block.chunks[chunk]
                .get_or_insert_with(|| vec![POISON[0]; chunk_bytes].into_boxed_slice());
            source(done, &mut stored[offset..offset + step]);
            done += step;
        }
        Ok(())
    }

    /// Reads the bytes from `address` into `target`.
    pub(crate) fn read_into(&self, address: u64, target: &mut [u8]) -> Result<(), MemoryFault> {
        self.read(address, target.len(), |at, part| {
            target[at..at + part.len()].copy_from_slice(part);
        })
    }

    /// Writes `source` to `address`.
    pub(crate) fn write_from(&mut self, address: u64, source: &[u8]) -> Result<(), MemoryFault> {
        self.write(address, source.len(), |at, part| {
            part.copy_from_slice(&source[at..at + part.len()]);
        })
    }
}

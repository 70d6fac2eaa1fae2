//! One load: what all its threads share, and the sizes of its buffers.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::open_piece::read_count;
use super::scheduler::ReadScheduler;
use super::source_file::{ALIGN_BYTES, SourceFile};
use super::{LoadConfig, LoadStats, Tensor};
use crate::{Catalog, Dtype, LoadError, LoadErrorKind, Plan, PlanOptions, TensorInfo};
use pinlane_core::memory::DeviceBuf;
use pinlane_core::{Device, Stream};

/// Size of a piece: large enough that the gaps between copies hardly matter.
const PIECE_BYTES: usize = 16 << 20;

/// Size of a piece when converting: one thread then reads the whole piece.
const CONVERTED_PIECE_BYTES: usize = 4 << 20;

/// Reads per piece: enough to keep all threads busy, few enough that each suits a disk.
const READS_PER_PIECE: usize = 16;

/// Slots being filled or in flight.
const SLOTS: usize = 8;

/// Slots per converting thread: one being filled, one in flight.
const SLOTS_PER_CONVERTING_THREAD: usize = 2;

const PAGE_BYTES: usize = ALIGN_BYTES as usize;

const PIECE_BYTES_MIN: usize = 4 * PAGE_BYTES;

/// Two pages, so that an element that starts at the last byte of a page is not split.
const READ_BYTES_MIN: usize = 2 * PAGE_BYTES;

pub(super) struct Job {
    pub(super) device: Device,
    pub(super) convert: Option<Dtype>,
    pub(super) sizes: BufferSizes,
    pub(super) threads: usize,
    /// One stream for all copies: copy engines take a while to switch streams.
    pub(super) stream: Stream,
    pub(super) plan: Plan,
    pub(super) tensors: Vec<TensorInfo>,
    /// The files of the tensors, by their position in the catalog.
    pub(super) files: HashMap<usize, SourceFile>,
    pub(super) memory: Vec<Arc<DeviceBuf<u8>>>,
    pub(super) scheduler: ReadScheduler,
    pub(super) began: Instant,
    pub(super) stats: Mutex<LoadStats>,
}

impl Job {
    /// Opens the files and allocates device memory.
    pub(super) fn new(
        device: &Device,
        catalog: &Catalog,
        tensors: &[TensorInfo],
        config: &LoadConfig,
    ) -> Result<Self, LoadError> {
        let threads = config.threads.unwrap_or(device.express_config().lanes);
        if threads == 0 {
            return Err(invalid("threads", "must be at least 1"));
        }
        let total_bytes = tensors.iter().map(TensorInfo::len_bytes).sum();
        let sizes = BufferSizes::choose(device, config, threads, total_bytes)?;
        let options = PlanOptions::default().piece_bytes(sizes.piece_bytes as u64);
        let plan = Plan::converting(tensors, config.convert, options)?;
        // No more threads than reads.
        let pieces = plan.pieces().take(threads);
        let reads = pieces.map(|piece| read_count(&piece, sizes.read_bytes));
        let threads = threads.min(reads.sum());
        let mut files = HashMap::new();
        for tensor in tensors {
            if !catalog.contains(tensor) {
                return Err(tensor.error(LoadErrorKind::OtherCatalog));
            }
            if let Entry::Vacant(file) = files.entry(tensor.file()) {
                let info = &catalog.files()[tensor.file()];
                file.insert(SourceFile::open(info, config.io)?);
            }
        }
        let mut job = Self {
            device: device.clone(),
            convert: config.convert,
            sizes,
            threads,
            stream: device.stream().map_err(LoadErrorKind::device)?,
            plan,
            tensors: tensors.to_vec(),
            files,
            memory: Vec::new(),
            scheduler: ReadScheduler::new(threads, sizes.slots),
            began: Instant::now(),
            stats: Mutex::default(),
        };
        job.allocate()?;
        Ok(job)
    }

    fn allocate(&mut self) -> Result<(), LoadError> {
        // Empty tensors need an allocation too.
        let allocations = match self.plan.allocations() {
            [] => &[0],
            some => some,
        };
        for (number, bytes) in allocations.iter().enumerate() {
            let allocated = usize::try_from(*bytes)
                .map_err(|_| LoadErrorKind::TotalOverflow)
                .and_then(|bytes| self.device.alloc(bytes).map_err(LoadErrorKind::device));
            let allocated = allocated.map_err(|kind| {
                let first = self.plan.placements().iter().position(|placement| {
                    placement.allocation == number && placement.len_bytes > 0
                });
                self.error(kind, first)
            })?;
            self.memory.push(Arc::new(allocated));
        }
        Ok(())
    }

    pub(super) fn error(&self, kind: LoadErrorKind, tensor: Option<usize>) -> LoadError {
        match tensor.map(|tensor| &self.tensors[tensor]) {
            None => kind.into(),
            Some(tensor) => {
                let file = &self.files[&tensor.file()];
                tensor.error(kind).with_file(file.info.path())
            }
        }
    }

    pub(super) fn tensor(&self, number: usize) -> Tensor {
        let placement = self.plan.placements()[number];
        let info = self.tensors[number].clone();
        let converted = self.convert.filter(|_| info.dtype().float_kind().is_some());
        Tensor {
            dtype: converted.unwrap_or(info.dtype()),
            info,
            memory: Arc::clone(&self.memory[placement.allocation]),
            start: placement.offset_bytes as usize,
            len: placement.len_bytes as usize,
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.scheduler.release_slots(&self.device);
    }
}

/// How much is read and copied at once, and how many pinned slots a load uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BufferSizes {
    /// Size of a pinned slot, which holds one piece.
    pub(super) slot_bytes: usize,
    /// Maximum number of slots, being filled or in flight.
    pub(super) slots: usize,
    /// File bytes per piece.
    pub(super) piece_bytes: usize,
    /// File bytes that one thread reads at once. `u64::MAX`: whole pieces.
    pub(super) read_bytes: u64,
}

impl BufferSizes {
    fn choose(
        device: &Device,
        config: &LoadConfig,
        threads: usize,
        total_bytes: u64,
    ) -> Result<Self, LoadError> {
        // A load may pin the unused budget, and what is idle: the slots of earlier loads, and memory that makes
        // room for new slots.
        let budget = device.budget();
        let limit_bytes = budget.limit_bytes().map_err(LoadErrorKind::device)?;
        let unused_bytes = limit_bytes.saturating_sub(budget.in_use_bytes());
        let left_bytes = unused_bytes.saturating_add(budget.idle_bytes());
        // Growth: how many times larger the smallest elements become.
        let (default_bytes, slots_max, growth) = match config.convert.and_then(Dtype::float_kind) {
            None => (PIECE_BYTES, SLOTS, 1),
            Some(kind) => {
                let slots_max = threads.saturating_mul(SLOTS_PER_CONVERTING_THREAD);
                (CONVERTED_PIECE_BYTES, slots_max, kind.bytes() / 2)
            }
        };
        let wanted_bytes = config.piece_bytes.unwrap_or(default_bytes);
        let valid = PIECE_BYTES_MIN..=1 << 30;
        if !wanted_bytes.is_multiple_of(PAGE_BYTES) || !valid.contains(&wanted_bytes) {
            let reason = "must be a multiple of 4096, from 16384 to 1073741824";
            return Err(invalid("piece_bytes", reason));
        }
        let default_pinned_bytes = default_bytes.saturating_mul(slots_max);
        let pinned_bytes = config
            .pinned_bytes
            .unwrap_or(default_pinned_bytes.max(2 * wanted_bytes));
        if pinned_bytes < 2 * PIECE_BYTES_MIN {
            return Err(invalid("pinned_bytes", "must be at least 32768"));
        }
        // If the budget has nothing left, allocating the smallest slot reports it.
        let pinned_bytes = pinned_bytes
            .min(usize::try_from(left_bytes).unwrap_or(usize::MAX))
            .max(2 * PIECE_BYTES_MIN);
        // At least two slots: one is filled while the other is in flight.
        let half_bytes = pinned_bytes / 2 / PAGE_BYTES * PAGE_BYTES;
        // A small load takes little memory. Powers of two let the next load reuse the slots.
        let all_bytes = usize::try_from(total_bytes)
            .unwrap_or(usize::MAX)
            .saturating_add(2 * PAGE_BYTES)
            .saturating_mul(growth)
            .checked_next_power_of_two();
        let slot_bytes = wanted_bytes
            .min(half_bytes)
            .min(all_bytes.unwrap_or(usize::MAX).max(PIECE_BYTES_MIN))
            .max(READ_BYTES_MIN * growth);
        Ok(Self {
            slot_bytes,
            slots: slots_max.min(pinned_bytes / slot_bytes).max(1),
            piece_bytes: slot_bytes / growth / PAGE_BYTES * PAGE_BYTES,
            read_bytes: match config.convert {
                None => (slot_bytes / READS_PER_PIECE).next_multiple_of(PAGE_BYTES) as u64,
                Some(_) => u64::MAX,
            },
        })
    }
}

fn invalid(field: &'static str, reason: &'static str) -> LoadError {
    LoadErrorKind::InvalidConfig { field, reason }.into()
}

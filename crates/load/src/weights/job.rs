//! One load: what all its threads share.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use super::buffer_sizes::{BufferSizes, invalid};
use super::piece_being_filled::{SlotBuf, read_count};
use super::rank_sharing::threads_of_rank;
use super::read_scheduler::ReadScheduler;
use super::source_file::SourceFile;
use super::{Io, LoadConfig, LoadStats, RankSharing, Tensor};
use crate::{Catalog, Dtype, LoadError, LoadErrorKind, PieceCopy, Plan, PlanOptions, TensorInfo};
use pinlane_core::memory::DeviceBuf;
use pinlane_core::{Device, DevicePtr, Stream, Transfer, TransferError};

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
    pub(super) memory: JobMemory,
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
        if config.device_bytes.is_some() {
            let reason = "is for loads into given memory; see `Weights::start_into`";
            return Err(invalid("device_bytes", reason));
        }
        let options = PlanOptions::default();
        let mut job = Self::open(device, catalog, tensors, config, options)?;
        job.allocate()?;
        Ok(job)
    }

    /// Opens the files. The device memory is given later, one target per tensor.
    pub(super) fn into_targets(
        device: &Device,
        catalog: &Catalog,
        tensors: &[TensorInfo],
        config: &LoadConfig,
    ) -> Result<Self, LoadError> {
        let window_bytes = config.device_bytes.unwrap_or(u64::MAX);
        if window_bytes == 0 {
            return Err(invalid("device_bytes", "must be at least 1"));
        }
        // No two tensors fit one byte, so that each gets an allocation of its own.
        let options = PlanOptions::default()
            .allocation_bytes(1)
            .window_bytes(window_bytes);
        let mut job = Self::open(device, catalog, tensors, config, options)?;
        let targets = job.plan.allocations().len();
        job.memory = JobMemory::Given((0..targets).map(|_| OnceLock::new()).collect());
        job.scheduler.targets_given(0);
        Ok(job)
    }

    fn open(
        device: &Device,
        catalog: &Catalog,
        tensors: &[TensorInfo],
        config: &LoadConfig,
        options: PlanOptions,
    ) -> Result<Self, LoadError> {
        let local_rank = config.rank_of_machine();
        let sharing = config.rank_sharing(catalog, tensors);
        let default_threads = || threads_of_rank(device.express_config().lanes, local_rank);
        let threads = config.threads.unwrap_or_else(default_threads);
        if threads == 0 {
            return Err(invalid("threads", "must be at least 1"));
        }
        let total_bytes = tensors.iter().map(TensorInfo::len_bytes).sum();
        let sizes = BufferSizes::choose(device, config, threads, total_bytes)?;
        let mut options = options.piece_bytes(sizes.piece_bytes as u64);
        let mut io = config.io;
        if sharing == RankSharing::PageCache {
            (options, io) = (options.local_rank(local_rank), Io::Buffered);
        }
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
                file.insert(SourceFile::open(info, io)?);
            }
        }
        Ok(Self {
            device: device.clone(),
            convert: config.convert,
            sizes,
            threads,
            stream: device.stream().map_err(LoadErrorKind::device)?,
            plan,
            tensors: tensors.to_vec(),
            files,
            memory: JobMemory::Own(Vec::new()),
            scheduler: ReadScheduler::new(threads, sizes.slots),
            began: Instant::now(),
            stats: Mutex::new(LoadStats {
                local_rank,
                sharing,
                ..LoadStats::default()
            }),
        })
    }

    fn allocate(&mut self) -> Result<(), LoadError> {
        // Empty tensors need an allocation too.
        let allocations = match self.plan.allocations() {
            [] => &[0],
            some => some,
        };
        let mut memory = Vec::with_capacity(allocations.len());
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
            memory.push(Arc::new(allocated));
        }
        self.memory = JobMemory::Own(memory);
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

    /// Type of a tensor's elements on the device.
    pub(super) fn dtype(&self, number: usize) -> Dtype {
        let dtype = self.tensors[number].dtype();
        let converted = self.convert.filter(|_| dtype.float_kind().is_some());
        converted.unwrap_or(dtype)
    }

    /// A tensor in memory of the load's own.
    pub(super) fn tensor(&self, number: usize) -> Tensor {
        let JobMemory::Own(memory) = &self.memory else {
            unreachable!("tensors in given memory are handed out with it");
        };
        let placement = self.plan.placements()[number];
        Tensor {
            dtype: self.dtype(number),
            info: self.tensors[number].clone(),
            memory: Arc::clone(&memory[placement.allocation]),
            start: placement.offset_bytes as usize,
            len: placement.len_bytes as usize,
        }
    }
}

/// Where the tensors of a load go.
pub(super) enum JobMemory {
    /// A few allocations of its own, which tensors share.
    Own(Vec<Arc<DeviceBuf<u8>>>),
    /// One given target per tensor, in the order of the plan. Each is set before a piece of it is opened.
    Given(Vec<OnceLock<DevicePtr>>),
}

impl JobMemory {
    /// Submits the copies of a slot. An error comes with the index of the copy it concerns.
    pub(super) fn upload(
        &self,
        stream: &Stream,
        slot: SlotBuf,
        copies: &[PieceCopy],
    ) -> Result<Transfer<SlotBuf>, (TransferError<SlotBuf>, usize)> {
        let range = |start: u64, copy: &PieceCopy| {
            let start = start as usize;
            start..start + copy.len_bytes as usize
        };
        match self {
            Self::Own(memory) => {
                let place = |copy: &PieceCopy| {
                    let buffer = &memory[copy.allocation];
                    let target = buffer.shared_range_mut(range(copy.to_bytes, copy));
                    (range(copy.from_bytes, copy), target)
                };
                let places: Vec<_> = copies.iter().map(place).collect();
                stream.upload_pieces(slot, &places)
            }
            Self::Given(targets) => {
                let place = |copy: &PieceCopy| {
                    let target = targets[copy.allocation].get();
                    let target = target.expect("its piece was opened later");
                    let to_bytes = copy.to_bytes as usize;
                    (range(copy.from_bytes, copy), target.offset(to_bytes))
                };
                let places: Vec<_> = copies.iter().map(place).collect();
                // SAFETY: a target has the size of its tensor, and the copy is inside of it. `TargetStream` keeps
                // it until the copy is done, and has ordered this stream behind its earlier uses.
                unsafe { stream.upload_ranges(slot, &places, &[]) }
            }
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.scheduler.release_slots(&self.device);
    }
}

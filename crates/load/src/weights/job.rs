//! One load: what all its threads share.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::buffer_sizes::{BufferSizes, invalid};
use super::open_piece::read_count;
use super::scheduler::ReadScheduler;
use super::source_file::SourceFile;
use super::{LoadConfig, LoadStats, Tensor};
use crate::{Catalog, Dtype, LoadError, LoadErrorKind, Plan, PlanOptions, TensorInfo};
use pinlane_core::memory::DeviceBuf;
use pinlane_core::{Device, Stream};

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

//! What all threads of a load share: files, places, and what is left to read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::files::{Source, Way};
use super::filling::slices;
use super::sizes::Sizes;
use super::slots::left_bytes;
use super::stats::LoadStats;
use super::team::{Team, Turn};
use super::{LoadConfig, Tensor};
use crate::{Catalog, Dtype, Fault, LoadError, Piece, Plan, TensorInfo};
use pinlane_core::memory::DeviceBuf;
use pinlane_core::{Device, Stream};

/// One load.
pub(super) struct Job {
    pub(super) device: Device,
    pub(super) convert: Option<Dtype>,
    pub(super) sizes: Sizes,
    pub(super) threads: usize,
    /// All copies go here, one behind the other: engines take a while to turn to another stream.
    pub(super) stream: Stream,
    plan: Plan,
    tensors: Vec<TensorInfo>,
    sources: Vec<Option<Source>>,
    memory: Vec<Arc<DeviceBuf<u8>>>,
    pub(super) team: Team,
    began: Instant,
    /// When the last bytes landed, counted from the start.
    landed_ns: AtomicU64,
    pub(super) spent: Spent,
}

/// What threads spent their time on, all together.
#[derive(Default)]
pub(super) struct Spent {
    pub(super) reading_ns: AtomicU64,
    pub(super) blocked_ns: AtomicU64,
    pub(super) converting_ns: AtomicU64,
    pub(super) waiting_ns: AtomicU64,
    pub(super) buffered_bytes: AtomicU64,
    pub(super) direct_bytes: AtomicU64,
}

impl Job {
    /// Opens the files and makes room on the device. Nothing has been read.
    pub(super) fn new(
        device: &Device,
        catalog: &Catalog,
        tensors: &[TensorInfo],
        config: &LoadConfig,
    ) -> Result<Self, LoadError> {
        let wanted = config.threads_for(device)?;
        let left_bytes = left_bytes(device).map_err(Fault::device)?;
        let total_bytes = tensors.iter().map(TensorInfo::len_bytes).sum();
        let sizes = Sizes::of(config, wanted, total_bytes, left_bytes)?;
        let plan = Plan::converting(tensors, config.convert, sizes.plan_options())?;
        // More than there are slices would have nothing to do.
        let slices = plan.pieces().map(|piece| slices(&piece, sizes.slice_bytes));
        let threads = wanted.min(slices.take(wanted).sum());
        let mut sources: Vec<_> = catalog.files().iter().map(|_| None).collect();
        for tensor in tensors {
            if !catalog.holds(tensor) {
                return Err(LoadError::from(Fault::OtherCatalog).with_tensor(tensor.name()));
            }
            let source = &mut sources[tensor.file()];
            if source.is_none() {
                *source = Some(Source::open(&catalog.files()[tensor.file()], config.io)?);
            }
        }
        let job = Self {
            device: device.clone(),
            convert: config.convert,
            sizes,
            threads,
            stream: device.stream().map_err(Fault::device)?,
            tensors: tensors.to_vec(),
            memory: Vec::new(),
            team: Team::new(threads, sizes.slots),
            began: Instant::now(),
            landed_ns: AtomicU64::new(0),
            spent: Spent::default(),
            sources,
            plan,
        };
        job.with_memory()
    }

    fn with_memory(mut self) -> Result<Self, LoadError> {
        // Tensors without elements lie somewhere, too.
        let none = [0];
        let allocations = match self.plan.allocations() {
            [] => &none,
            some => some,
        };
        for (number, bytes) in allocations.iter().enumerate() {
            let made = usize::try_from(*bytes)
                .map_err(|_| Fault::TooMuch)
                .and_then(|bytes| self.device.alloc(bytes).map_err(Fault::device));
            let made = made.map_err(|fault| {
                let first = self.plan.placements().iter().position(|placement| {
                    placement.allocation == number && placement.len_bytes > 0
                });
                self.failed(fault, first)
            })?;
            self.memory.push(Arc::new(made));
        }
        Ok(self)
    }

    /// An error about a tensor.
    pub(super) fn failed(&self, fault: Fault, tensor: Option<usize>) -> LoadError {
        let error = LoadError::from(fault);
        match tensor.map(|tensor| &self.tensors[tensor]) {
            None => error,
            Some(tensor) => {
                let error = error.with_tensor(tensor.name());
                match &self.sources[tensor.file()] {
                    Some(source) => error.of(source.info().path()),
                    None => error,
                }
            }
        }
    }

    pub(super) fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// Bytes of files that are read for each tensor, in all.
    pub(super) fn total_bytes(&self) -> u64 {
        self.tensors.iter().map(TensorInfo::len_bytes).sum()
    }

    /// The file of a piece.
    pub(super) fn source(&self, piece: &Piece) -> &Source {
        let source = self.sources[piece.file].as_ref();
        source.expect("opened, since a tensor lies in it")
    }

    pub(super) fn memory(&self, allocation: usize) -> &DeviceBuf<u8> {
        &self.memory[allocation]
    }

    /// The type that a tensor has on the device.
    pub(super) fn dtype(&self, tensor: usize) -> Dtype {
        let own = self.tensors[tensor].dtype();
        match self.convert {
            Some(to) if own.float_kind().is_some() => to,
            _ => own,
        }
    }

    /// A tensor that is complete.
    pub(super) fn tensor(&self, number: usize) -> Tensor {
        let placement = self.plan.placements()[number];
        let memory = match placement.len_bytes {
            0 => &self.memory[0],
            _ => &self.memory[placement.allocation],
        };
        Tensor::new(
            &self.tensors[number],
            self.dtype(number),
            memory,
            placement.offset_bytes as usize,
            placement.len_bytes as usize,
        )
    }

    /// Nobody wants the rest.
    pub(super) fn stop(&self) {
        self.team.stop();
    }

    /// What a thread does next.
    pub(super) fn turn(&self) -> Turn {
        self.team.turn(&self.plan)
    }

    /// Bytes have landed.
    pub(super) fn landed(&self) {
        let ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.landed_ns.fetch_max(ns, Ordering::Relaxed);
    }

    /// Bytes have been read.
    pub(super) fn read(&self, way: Way, bytes: u64) {
        let read_bytes = match way {
            Way::Buffered => &self.spent.buffered_bytes,
            Way::Direct => &self.spent.direct_bytes,
        };
        read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn stats(&self) -> LoadStats {
        let spent = &self.spent;
        let of = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let time = |value: &AtomicU64| Duration::from_nanos(of(value));
        LoadStats {
            elapsed: time(&self.landed_ns),
            threads: self.threads,
            buffered_bytes: of(&spent.buffered_bytes),
            direct_bytes: of(&spent.direct_bytes),
            reading: time(&spent.reading_ns),
            blocked: time(&spent.blocked_ns),
            converting: time(&spent.converting_ns),
            waiting: time(&spent.waiting_ns),
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.team.end(&self.device);
    }
}

/// Count time that was spent.
pub(super) fn add(spent_ns: &AtomicU64, took: Duration) {
    let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    spent_ns.fetch_add(ns, Ordering::Relaxed);
}

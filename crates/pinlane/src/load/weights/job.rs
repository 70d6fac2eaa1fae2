//! What all threads of a load share: files, places, and what is left to read.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::files::{Source, Way};
use super::stats::LoadStats;
use super::{LoadConfig, Tensor};
use crate::load::plan::Cursor;
use crate::load::{Catalog, Dtype, Fault, LoadError, Piece, Plan, TensorInfo};
use crate::memory::DeviceBuf;
use crate::{Device, Stream};

/// One load.
pub(super) struct Job {
    pub(super) device: Device,
    pub(super) convert: Option<Dtype>,
    pub(super) slot_bytes: usize,
    pub(super) threads: usize,
    /// All copies go here, one behind the other: engines take a while to turn to another stream.
    pub(super) stream: Stream,
    plan: Plan,
    tensors: Vec<TensorInfo>,
    sources: Vec<Option<Source>>,
    memory: Vec<Arc<DeviceBuf<u8>>>,
    queue: Mutex<Queue>,
    stop: AtomicBool,
    /// Threads that have page-locked memory, or may get some.
    able: AtomicUsize,
    began: Instant,
    /// When the last bytes landed, counted from the start.
    landed_ns: AtomicU64,
    pub(super) spent: Spent,
}

/// What threads spent their time on, all together.
#[derive(Default)]
pub(super) struct Spent {
    pub(super) reading_ns: AtomicU64,
    pub(super) converting_ns: AtomicU64,
    pub(super) waiting_ns: AtomicU64,
    pub(super) buffered_bytes: AtomicU64,
    pub(super) direct_bytes: AtomicU64,
}

/// What is left to read.
#[derive(Default)]
struct Queue {
    cursor: Cursor,
    /// Pieces that are not in the page cache, put off while enough threads wait for the disk.
    put_off: VecDeque<Piece>,
    /// Threads that wait for the disk.
    at_disk: usize,
}

/// A piece to read, and how.
pub(super) struct Task {
    pub(super) piece: Piece,
    pub(super) way: Way,
}

impl Job {
    /// Opens the files and makes room on the device. Nothing has been read.
    pub(super) fn new(
        device: &Device,
        catalog: &Catalog,
        tensors: &[TensorInfo],
        config: &LoadConfig,
    ) -> Result<Self, LoadError> {
        let plan = Plan::converting(tensors, config.convert, config.plan_options()?)?;
        // More would only page-lock memory.
        let threads = plan.pieces().take(config.threads_for(device)?).count();
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
            slot_bytes: config.slot_bytes()?,
            able: AtomicUsize::new(threads),
            threads,
            stream: device.stream().map_err(Fault::device)?,
            tensors: tensors.to_vec(),
            memory: Vec::new(),
            queue: Mutex::default(),
            stop: AtomicBool::new(false),
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
        self.stop.store(true, Ordering::Relaxed);
    }

    /// What to read next. `None` at the end, or when nobody wants the rest.
    ///
    /// Pieces come as they lie in the files, but for those that have to come from a disk while
    /// enough threads wait for it: others of the page cache go before them.
    pub(super) fn take(&self) -> Option<Task> {
        let at_disk_at_most = (self.threads * 2 / 3).max(1);
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return None;
            }
            let piece = {
                let mut queue = self.queue();
                let late = queue.at_disk < at_disk_at_most;
                match late.then(|| queue.put_off.pop_front()).flatten() {
                    Some(piece) => {
                        queue.at_disk += 1;
                        let way = Way::Direct;
                        return Some(Task { piece, way });
                    }
                    None => self.plan.next(&mut queue.cursor),
                }
            };
            let Some(piece) = piece else {
                let mut queue = self.queue();
                let piece = queue.put_off.pop_front()?;
                queue.at_disk += 1;
                let way = Way::Direct;
                return Some(Task { piece, way });
            };
            // Asked without the lock, since it takes a while.
            match self.source(&piece).way(&piece.bytes) {
                Way::Buffered => {
                    let way = Way::Buffered;
                    return Some(Task { piece, way });
                }
                way => {
                    let mut queue = self.queue();
                    if queue.at_disk < at_disk_at_most {
                        queue.at_disk += 1;
                        return Some(Task { piece, way });
                    }
                    queue.put_off.push_back(piece);
                }
            }
        }
    }

    /// So many threads cannot work. Whether nobody is left who can.
    pub(super) fn give_up(&self, threads: usize) -> bool {
        self.able.fetch_sub(threads, Ordering::AcqRel) == threads
    }

    /// Bytes have landed.
    pub(super) fn landed(&self) {
        let ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.landed_ns.fetch_max(ns, Ordering::Relaxed);
    }

    /// A piece has been read.
    pub(super) fn read(&self, task: &Task, took: Duration) {
        let spent = &self.spent;
        let bytes = match task.way {
            Way::Buffered => &spent.buffered_bytes,
            Way::Direct => {
                self.queue().at_disk -= 1;
                &spent.direct_bytes
            }
        };
        bytes.fetch_add(task.piece.len_bytes(), Ordering::Relaxed);
        add(&spent.reading_ns, took);
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
            converting: time(&spent.converting_ns),
            waiting: time(&spent.waiting_ns),
        }
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Count time that was spent.
pub(super) fn add(spent_ns: &AtomicU64, took: Duration) {
    let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    spent_ns.fetch_add(ns, Ordering::Relaxed);
}

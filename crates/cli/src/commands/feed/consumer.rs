//! A kernel per batch, in place of a training step.

use std::collections::VecDeque;
use std::time::Duration;

use pinlane::load::Batch;
use pinlane::{Builtin, Device, DeviceBuf, Event, Stream};
use pinlane_report::FeedKernel;

/// Kernels in flight: enough that the GPU never waits for the host, few enough that Ctrl-C does not wait long
/// for the GPU.
const IN_FLIGHT_MAX: usize = 2;

/// How often to check for an interrupt.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Bytes of a batch that are read.
const READ_BYTES: usize = 64;

/// Runs a kernel for each batch on its own stream, and times it.
pub(super) struct Consumer {
    kernels: Builtin,
    stream: Stream,
    kernel_ns: u64,
    scratch: DeviceBuf<u8>,
    /// The start of the first kernel.
    first_start: Event,
    in_flight: VecDeque<KernelEvents>,
    spare: Vec<KernelEvents>,
    submitted: u64,
    done: FeedKernel,
}

/// Events around a kernel.
struct KernelEvents {
    start: Event,
    end: Event,
}

impl Consumer {
    pub(super) fn new(device: &Device, kernel_ns: u64) -> anyhow::Result<Self> {
        let mut spare = Vec::new();
        for _ in 0..=IN_FLIGHT_MAX {
            spare.push(KernelEvents {
                start: device.event_with_timing()?,
                end: device.event_with_timing()?,
            });
        }
        Ok(Self {
            kernels: Builtin::load(device)?,
            stream: device.stream()?,
            kernel_ns,
            scratch: device.alloc(READ_BYTES)?,
            first_start: device.event_with_timing()?,
            in_flight: VecDeque::new(),
            spare,
            submitted: 0,
            done: FeedKernel {
                count: 0,
                busy_ns: 0,
                span_ns: 0,
            },
        })
    }

    /// Submits a kernel for this batch. Waits while too many are in flight, unless `stop` returns true.
    pub(super) fn consume(&mut self, batch: &Batch, stop: impl Fn() -> bool) -> anyhow::Result<()> {
        // Reading the batch before and after the kernel makes the stream wait for the batch outside of the
        // kernel's time, and keeps the batch in use until the kernel is done.
        self.read(batch)?;
        let events = self.spare.pop().expect("one more than may be in flight");
        if self.submitted == 0 {
            self.stream.record(&self.first_start)?;
        }
        self.stream.record(&events.start)?;
        self.kernels.spin(&self.stream, self.kernel_ns)?;
        self.stream.record(&events.end)?;
        self.read(batch)?;
        self.submitted += 1;
        self.in_flight.push_back(events);
        while self.in_flight.len() > IN_FLIGHT_MAX {
            let first = self.in_flight.front().expect("not empty");
            if first.end.wait_timeout(POLL_INTERVAL)? {
                self.count_first()?;
            } else if stop() {
                // Nothing is submitted after this.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Waits for the last kernels. Returns the times of all.
    pub(super) fn finish(mut self) -> anyhow::Result<FeedKernel> {
        while let Some(first) = self.in_flight.front() {
            first.end.synchronize()?;
            self.count_first()?;
        }
        self.stream.synchronize()?;
        Ok(self.done)
    }

    fn count_first(&mut self) -> pinlane::Result<()> {
        let Some(events) = self.in_flight.pop_front() else {
            return Ok(());
        };
        let ns = |from: &Event, to: &Event| -> pinlane::Result<u64> {
            Ok(u64::try_from(from.elapsed_ns(to)?).unwrap_or(0))
        };
        self.done.count += 1;
        self.done.busy_ns += ns(&events.start, &events.end)?;
        self.done.span_ns = ns(&self.first_start, &events.end)?;
        self.spare.push(events);
        Ok(())
    }

    fn read(&mut self, batch: &Batch) -> pinlane::Result<()> {
        let mut fields = batch.fields().map(|field| field.bytes());
        let Some(bytes) = fields.find(|bytes| !bytes.is_empty()) else {
            return Ok(());
        };
        let len = bytes.len().min(READ_BYTES);
        self.stream
            .copy_on_device(bytes.range(..len), self.scratch.range_mut(..len))
    }
}

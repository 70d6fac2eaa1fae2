//! A kernel a batch, in the place of a network that learns.

use std::collections::VecDeque;
use std::time::Duration;

use pinlane::load::Batch;
use pinlane::{Builtin, Device, DeviceBuf, Event, Stream};
use pinlane_report::FeedKernel;

/// Kernels that are submitted and not done: enough that the GPU never waits for the host, few enough that
/// Ctrl-C need not wait long for the GPU.
const AHEAD: usize = 2;

/// How long anyone waits before seeing whether to stop.
pub(super) const GLANCE: Duration = Duration::from_millis(50);

/// Bytes of a batch that are looked at.
const LOOK_BYTES: usize = 64;

/// Works on batches on a stream of its own, and takes the time.
pub(super) struct Consumer {
    kernels: Builtin,
    stream: Stream,
    kernel_ns: u64,
    /// What is looked at goes here.
    seen: DeviceBuf<u8>,
    /// Start of the first kernel.
    origin: Event,
    under_way: VecDeque<Marks>,
    spare: Vec<Marks>,
    submitted: u64,
    done: FeedKernel,
}

/// Around a kernel.
struct Marks {
    start: Event,
    end: Event,
}

impl Consumer {
    pub(super) fn new(device: &Device, kernel_ns: u64) -> anyhow::Result<Self> {
        let mut spare = Vec::new();
        for _ in 0..=AHEAD {
            spare.push(Marks {
                start: device.event_with_timing()?,
                end: device.event_with_timing()?,
            });
        }
        Ok(Self {
            kernels: Builtin::load(device)?,
            stream: device.stream()?,
            kernel_ns,
            seen: device.alloc(LOOK_BYTES)?,
            origin: device.event_with_timing()?,
            under_way: VecDeque::new(),
            spare,
            submitted: 0,
            done: FeedKernel {
                count: 0,
                busy_ns: 0,
                span_ns: 0,
            },
        })
    }

    /// Submit a kernel for this batch. Waits while more than enough are under way, unless `stop`.
    pub(super) fn take(&mut self, batch: &Batch, stop: impl Fn() -> bool) -> anyhow::Result<()> {
        // The stream waits for the batch first, so that this is no time of the kernel; and it is done
        // with the batch only after the kernel.
        self.look(batch)?;
        let marks = self.spare.pop().expect("as many as may be under way");
        if self.submitted == 0 {
            self.stream.record(&self.origin)?;
        }
        self.stream.record(&marks.start)?;
        self.kernels.spin(&self.stream, self.kernel_ns)?;
        self.stream.record(&marks.end)?;
        self.look(batch)?;
        self.submitted += 1;
        self.under_way.push_back(marks);
        while self.under_way.len() > AHEAD {
            let first = self.under_way.front().expect("more than enough");
            if first.end.wait_timeout(GLANCE)? {
                self.count_first()?;
            } else if stop() {
                // Nothing is submitted after that.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Wait for the last kernels. What all of them took.
    pub(super) fn finish(mut self) -> anyhow::Result<FeedKernel> {
        while let Some(first) = self.under_way.front() {
            first.end.synchronize()?;
            self.count_first()?;
        }
        self.stream.synchronize()?;
        Ok(self.done)
    }

    fn count_first(&mut self) -> pinlane::Result<()> {
        let Some(marks) = self.under_way.pop_front() else {
            return Ok(());
        };
        let ns = |from: &Event, to: &Event| -> pinlane::Result<u64> {
            Ok(u64::try_from(from.elapsed_ns(to)?).unwrap_or(0))
        };
        self.done.count += 1;
        self.done.busy_ns += ns(&marks.start, &marks.end)?;
        self.done.span_ns = ns(&self.origin, &marks.end)?;
        self.spare.push(marks);
        Ok(())
    }

    fn look(&mut self, batch: &Batch) -> pinlane::Result<()> {
        let mut fields = batch.fields().map(|field| field.bytes());
        let Some(bytes) = fields.find(|bytes| !bytes.is_empty()) else {
            return Ok(());
        };
        let len = bytes.len().min(LOOK_BYTES);
        self.stream
            .copy_on_device(bytes.range(..len), self.seen.range_mut(..len))
    }
}

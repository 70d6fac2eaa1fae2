//! How long a kernel takes, by the size of its chunk.

use super::PlanError;
use crate::schedule::Work;

const GIB: u128 = 1 << 30;

/// Duration of a kernel on a chunk, excluding its launch: `fixed_ns`, and the chunk's share of `ns_per_gib`
/// but at least `least_ns`.
///
/// ```
/// use pinlane_model::pipeline::KernelTime;
///
/// // 10 ms for each GiB; less than 16 MiB do not fill the GPU.
/// let kernel = KernelTime {
///     ns_per_gib: 10_000_000,
///     least_ns: 156_250,
///     ..KernelTime::default()
/// };
/// assert_eq!(kernel.ns(32 << 20)?, 312_500);
/// assert_eq!(kernel.ns(16 << 20)?, 156_250);
/// assert_eq!(kernel.ns(1 << 20)?, 156_250);
/// # Ok::<(), pinlane_model::pipeline::PlanError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct KernelTime {
    /// Fixed part of each launch, such as its last blocks, during which kernels of other streams can run.
    pub fixed_ns: u64,
    /// Time of a chunk that is too small to fill the device, however small it is. Kernels of other
    /// streams use what it leaves.
    pub least_ns: u64,
    /// Time for each GiB of input of a chunk that is large enough, prorated to the byte.
    pub ns_per_gib: u64,
    /// Share of the device, in percent, that the kernel leaves to kernels of other streams whatever the
    /// chunk, for instance since it always has the same few blocks. Above 100 counts as 100.
    pub idle_percent: u32,
}

/// Less than this share of the device is not told from noise.
const IDLE_PERCENT_LEAST: f64 = 10.0;

/// Added to the misfit of a kernel with a fixed part, by its share: among equals, the smaller one wins.
const FIXED_PENALTY: f64 = 0.02;

/// Times up to this part of the least time are not told from it.
const FLAT_PERCENT: u128 = 103;

/// Most measurements that are used. Every line through two of them is tried.
const POINTS_AT_MOST: usize = 64;

impl KernelTime {
    /// Nanoseconds for a chunk of `bytes_in`, alone on the device.
    ///
    /// # Errors
    /// [`PlanError`] for `kernel`, if they do not fit into 64 bits.
    pub fn ns(&self, bytes_in: u64) -> Result<u64, PlanError> {
        let ns = self.wide_ns(bytes_in);
        u64::try_from(ns).map_err(|_| {
            let reason = format!("{ns} ns for a chunk of {bytes_in} bytes do not fit into 64 bits");
            PlanError::invalid("kernel", reason)
        })
    }

    /// Finds the times that fit measurements best, each `(bytes, ns)` of a kernel over a chunk. They exclude
    /// the launch ([`KernelCosts::launch_ns`](crate::KernelCosts)).
    ///
    /// `alone` are kernels one after the other on one stream; the more sizes, the better, from the smallest
    /// chunk that may be planned to the whole input. `together` are kernels on several streams at once, the time
    /// of all divided by their number; there may be none. A few wrong times do no harm.
    ///
    /// ```
    /// use pinlane_model::pipeline::KernelTime;
    ///
    /// let mib = |count: u64| count << 20;
    /// let times = [(mib(1), 150_000), (mib(4), 151_000), (mib(16), 160_000), (mib(64), 640_000)];
    /// let kernel = KernelTime::fit(&times, (4, &[]));
    /// assert_eq!(kernel.ns_per_gib, 10_240_000);
    /// assert_eq!(kernel.least_ns, 151_000);
    /// ```
    #[must_use]
    pub fn fit(alone: &[(u64, u64)], together: (u32, &[(u64, u64)])) -> Self {
        let points: Vec<_> = alone.iter().filter(|(bytes, _)| *bytes > 0).collect();
        let step = points.len().div_ceil(POINTS_AT_MOST).max(1);
        let points: Vec<_> = points.into_iter().step_by(step).collect();
        let sizes = || points.iter().map(|point| point.0);
        let (smallest, largest) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
        let mut best = (f64::INFINITY, Self::default());
        for (index, &&first) in points.iter().enumerate() {
            let through_zero = Self::line((0, 0), first);
            let others = points[index + 1..].iter();
            let lines = others.map(|&&other| Self::line(first, other));
            let flat = Some(Self::default());
            for line in lines.flatten().chain(through_zero).chain(flat) {
                let floors = points
                    .iter()
                    .map(|point| point.1.saturating_sub(line.fixed_ns));
                for least_ns in floors.chain([0]) {
                    let mut kernel = Self { least_ns, ..line };
                    // A rate that no size shows would be made up.
                    let flat_ns = kernel.wide_ns(smallest).saturating_mul(FLAT_PERCENT) / 100;
                    if kernel.ns_per_gib > 0
                        && smallest < largest
                        && kernel.wide_ns(largest) <= flat_ns
                    {
                        continue;
                    }
                    kernel.idle_percent = kernel.idle_percent_of(together.1);
                    // If only one size fills the device, many lines fit as well as the one through zero.
                    let misfit = kernel.misfit(&points, together)
                        + FIXED_PENALTY * kernel.fixed_share(largest);
                    if misfit < best.0 {
                        best = (misfit, kernel);
                    }
                }
            }
        }
        best.1
    }

    /// How far measured times are off, as ratios. Not squared: a wrong time must not weigh more than others.
    fn misfit(&self, alone: &[&(u64, u64)], together: (u32, &[(u64, u64)])) -> f64 {
        let off = |expected_ns: u128, ns: u64| {
            let ratio = expected_ns.max(1) as f64 / ns.max(1) as f64;
            ratio.ln().abs()
        };
        let alone = alone
            .iter()
            .map(|&&(bytes, ns)| off(self.wide_ns(bytes), ns));
        let streams = u128::from(together.0.max(1));
        let together = together.1.iter().map(|&(bytes, ns)| {
            let side_by_side_ns = self.wide_ns(bytes) / streams;
            off(side_by_side_ns.max(self.busy_ns(bytes)), ns)
        });
        alone.sum::<f64>() + together.sum::<f64>()
    }

    /// The line through two points; `None` if it falls or begins below 0.
    fn line(a: (u64, u64), b: (u64, u64)) -> Option<Self> {
        let [(bytes, ns), (more_bytes, more_ns)] = if a.0 < b.0 { [a, b] } else { [b, a] };
        let rise = u128::from(more_ns.checked_sub(ns)?) * GIB;
        let ns_per_gib = rise.checked_div(u128::from(more_bytes - bytes))?;
        let ns_per_gib = u64::try_from(ns_per_gib).ok()?;
        let within = u128::from(ns_per_gib) * u128::from(bytes) / GIB;
        Some(Self {
            fixed_ns: u64::try_from(u128::from(ns).checked_sub(within)?).ok()?,
            ns_per_gib,
            ..Self::default()
        })
    }

    /// The share of the fixed part in a chunk of this size; 0 if no other part grows with it.
    fn fixed_share(&self, bytes: u64) -> f64 {
        match self.ns_per_gib {
            0 => 0.0,
            _ => self.fixed_ns as f64 / self.wide_ns(bytes).max(1) as f64,
        }
    }

    /// What the kernel leaves idle, by times together on chunks that are large enough.
    fn idle_percent_of(&self, together: &[(u64, u64)]) -> u32 {
        let full = together.iter().filter_map(|&(bytes, ns)| {
            let variable_ns = self.variable_ns(bytes);
            let is_full = variable_ns > 0 && variable_ns >= u128::from(self.least_ns);
            is_full.then(|| (1.0 - ns as f64 / variable_ns as f64) * 100.0)
        });
        let mut percents: Vec<f64> = full.collect();
        percents.sort_by(f64::total_cmp);
        match percents.get(percents.len() / 2) {
            // It fits: at most 100.
            Some(&percent) if percent >= IDLE_PERCENT_LEAST => percent.round() as u32,
            _ => 0,
        }
    }

    fn wide_ns(&self, bytes_in: u64) -> u128 {
        u128::from(self.fixed_ns) + self.variable_ns(bytes_in).max(self.least_ns.into())
    }

    fn variable_ns(&self, bytes_in: u64) -> u128 {
        u128::from(bytes_in) * u128::from(self.ns_per_gib) / GIB
    }

    /// Time in which it occupies the whole device.
    fn busy_ns(&self, bytes_in: u64) -> u128 {
        let busy_percent = 100 - self.idle_percent.min(100);
        self.variable_ns(bytes_in) * u128::from(busy_percent) / 100
    }

    /// The rest of its time, alone on the device, and the time in which it occupies the whole device.
    pub(crate) fn tail_and_busy_ns(&self, bytes_in: u64) -> Result<(u64, u64), PlanError> {
        let all_ns = self.ns(bytes_in)?;
        // At most `all_ns`.
        let busy_ns = u64::try_from(self.busy_ns(bytes_in)).unwrap_or(all_ns);
        Ok((all_ns - busy_ns, busy_ns))
    }

    /// The kernel as work for the device.
    pub(crate) fn work(&self, bytes_in: u64) -> Result<Work, PlanError> {
        let (tail_ns, ns) = self.tail_and_busy_ns(bytes_in)?;
        Ok(Work::Kernel { tail_ns, ns })
    }
}

//! Work that flows at a speed which changes, in integers.

/// What a running operation has left to do. Work is counted in parts of a nanosecond, `speed`
/// parts are done in a nanosecond, so that nothing is ever rounded but the end, which is rounded up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    left: u128,
    /// Up to when `left` is counted.
    counted_ns: u64,
    speed: u64,
    not_before_ns: u64,
    end_ns: u64,
}

impl Flow {
    /// Work that takes `alone_ns` at the speed `full`, begun at `speed`.
    pub(super) fn new(now_ns: u64, alone_ns: u64, full: u64, speed: u64) -> Self {
        let mut flow = Self {
            left: u128::from(alone_ns) * u128::from(full),
            counted_ns: now_ns,
            speed,
            not_before_ns: 0,
            end_ns: now_ns.saturating_add(alone_ns),
        };
        if speed != full {
            flow.find_end();
        }
        flow
    }

    /// From now on it flows at this speed.
    pub(super) fn set_speed(&mut self, now_ns: u64, speed: u64) {
        let passed_ns = now_ns.saturating_sub(self.counted_ns);
        let done = u128::from(passed_ns) * u128::from(self.speed);
        self.left = self.left.saturating_sub(done);
        self.counted_ns = self.counted_ns.max(now_ns);
        self.speed = speed;
        self.find_end();
    }

    /// It does not end before this time.
    pub(super) fn not_before(&mut self, at_ns: u64) {
        self.not_before_ns = at_ns;
        self.end_ns = self.end_ns.max(at_ns);
    }

    /// When it is done, if the speed stays.
    pub(super) fn end_ns(&self) -> u64 {
        self.end_ns
    }

    fn find_end(&mut self) {
        // Nearly always it fits, and dividing 128 bits is slow.
        let takes_ns = match u64::try_from(self.left) {
            Ok(left) => left.div_ceil(self.speed),
            Err(_) => u64::try_from(self.left.div_ceil(self.speed.into())).unwrap_or(u64::MAX),
        };
        let end_ns = self.counted_ns.saturating_add(takes_ns);
        self.end_ns = end_ns.max(self.not_before_ns);
    }
}

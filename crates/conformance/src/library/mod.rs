//! What the library does on any device: one small program per feature.
//!
//! A scenario returns the first error, checks its results, and frees everything. As a case it also
//! checks the device's statistics. The library's tests run the same scenarios under
//! adversarial schedules and with failing calls.

mod awaited_transfers;
mod block_on;
mod dot;
mod express_copies;
mod large_pinned;
mod lifetime;
mod normalize;
mod pool;
mod stream_order;
mod transfers;

use pinlane::{Device, DeviceStats, Result};

use crate::outcome::check_eq;
use crate::{Case, Outcome, TestDevice};
pub use block_on::block_on;

/// A small program that uses the library.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// Its name, such as `library/round-trip`.
    pub name: &'static str,
    /// The program.
    pub run: fn(&Device) -> Result<()>,
}

/// Lists scenarios, and makes each a case of the suite.
macro_rules! scenarios {
    ($($name:literal => $run:path,)*) => {
        /// All scenarios.
        pub const SCENARIOS: &[Scenario] = &[$(Scenario { name: $name, run: $run }),*];

        /// All scenarios, as cases.
        pub(crate) const CASES: &[Case] = &[$(Case {
            name: $name,
            run: |test| on_device(test, $run),
            misuse: false,
        }),*];
    };
}

scenarios! {
    "library/round-trip" => transfers::round_trip,
    "library/timed" => transfers::timed,
    "library/registered" => transfers::registered,
    "library/read-only" => transfers::read_only,
    "library/registered-mapping" => transfers::mapping,
    "library/write-combined" => transfers::write_combined,
    "library/write-combined-sink" => transfers::write_combined_sink,
    "library/parts" => transfers::parts,
    "library/pageable" => transfers::pageable,
    "library/nothing" => transfers::nothing,
    "library/large-pinned" => large_pinned::pinned,
    "library/large-mapped" => large_pinned::mapped,
    "library/to-pinned" => large_pinned::to_pinned,
    "library/pool" => pool::reused,
    "library/pool-in-flight" => pool::in_flight,
    "library/express" => express_copies::there_and_back,
    "library/express-on-two-streams" => express_copies::on_two_streams,
    "library/express-many-pieces" => express_copies::many_pieces,
    "library/express-converted-by-the-device" => express_copies::converted_by_the_device,
    "library/express-narrowed-by-the-host" => express_copies::narrowed_by_the_host,
    "library/express-widened-by-the-host" => express_copies::widened_by_the_host,
    "library/dot-to-the-last-bit" => dot::same_bits,
    "library/dot-atomic" => dot::atomic,
    "library/dot-of-other-lengths" => dot::refusals,
    "library/normalized-to-the-last-bit" => normalize::same_bits,
    "library/normalized-of-other-lengths" => normalize::refusals,
    "library/order-across-streams" => stream_order::across_streams,
    "library/readers-and-a-writer" => stream_order::readers_and_writer,
    "library/sub-ranges" => stream_order::sub_ranges,
    "library/stream-ordered-memory" => stream_order::stream_ordered,
    "library/default-stream" => stream_order::default_stream,
    "library/events" => stream_order::events,
    "library/scope" => lifetime::scope,
    "library/scope-with-leaked-transfer" => lifetime::scope_leaked,
    "library/scope-registered" => lifetime::scope_registered,
    "library/dropped-transfer" => lifetime::dropped_transfer,
    "library/dropped-device-buffer" => lifetime::dropped_device_buffer,
    "library/kept-device-memory" => lifetime::kept_device_memory,
    "library/dropped-module" => lifetime::dropped_module,
    "library/dropped-stream" => lifetime::dropped_stream,
    "library/mapped-and-held" => lifetime::mapped,
    "library/mapped-copies" => transfers::mapped_copies,
    "library/timed-out" => lifetime::timed_out,
    "library/awaited" => awaited_transfers::awaited,
    "library/awaited-together" => awaited_transfers::awaited_together,
    "library/cancelled" => awaited_transfers::cancelled,
    "library/awaited-events-and-streams" => awaited_transfers::events_and_streams,
    "library/awaited-in-scope" => awaited_transfers::in_scope,
}

fn on_device(test: &TestDevice<'_>, run: fn(&Device) -> Result<()>) -> Outcome {
    let device = Device::open(test.platform, test.ordinal)?;
    run(&device)?;
    device.synchronize()?;
    device.trim(); // releases what the express lane keeps
    check_eq!(device.take_stray_errors(), [], "unreported errors");
    check_eq!(device.stats(), DeviceStats::default(), "leaked resources");
    Ok(())
}

fn numbers(len: u32) -> Vec<u32> {
    (0..len).map(|i| i.wrapping_mul(2_654_435_761)).collect()
}

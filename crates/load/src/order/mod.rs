//! Which samples a rank sees in an epoch, and in which order.
//!
//! ```text
//!   samples 0..n ── Permutation (seed, epoch) ── one order for all ranks
//!      │  Shard    rank r of w takes the places r, r + w, r + 2w, …
//!      │  Tail     what becomes of what does not divide evenly
//!      ▼
//!   Order ── sample(position), batch(number): computed when they are asked for, nothing is stored
//!   Progress ── how far an epoch has come, to go on from there
//! ```
//!
//! An order depends on the number of samples, seed, epoch, rank and world only. The size of a batch
//! cuts it, and says how far it is filled up; workers and prefetching have no part in it.
//!
//! ```
//! use pinlane::load::{Order, OrderConfig, Shard, Tail};
//!
//! let config = OrderConfig {
//!     seed: 7,
//!     shuffle: true,
//!     batch: 4,
//!     tail: Tail::Keep,
//!     shard: Shard::new(1, 2)?,
//! };
//! let order = Order::new(10, 0, &config)?;
//! assert_eq!(order.samples(), 5); // each of two ranks has half of ten
//! assert_eq!(order.batches(), 2);
//! assert_eq!(order.batch_len(1), 1);
//! let first: Vec<usize> = order.batch(0).map(|sample| sample.index).collect();
//! assert_eq!(first.len(), 4);
//! # Ok::<(), pinlane::load::OrderError>(())
//! ```

mod config;
mod error;
mod launcher;
#[expect(
    clippy::module_inception,
    reason = "the order itself, beside its parts"
)]
mod order;
mod permutation;
mod progress;
mod shard;

pub use config::{OrderConfig, Tail};
pub use error::OrderError;
pub use order::{Order, Sample};
pub use progress::Progress;
pub use shard::Shard;

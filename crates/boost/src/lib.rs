//! The library that `pinlane boost` preloads into programs nobody changes: their copies of ordinary memory go over
//! the express lane.
//!
//! ```text
//!   program ── dlsym, cuGetProcAddress, or linked ──> calls.rs      the wrapped calls, by libcuda's names
//!                                                        |
//!     interpose/    how programs get the wrappers        ├── copies.rs       pageable copies over the express lane
//!                   instead of libcuda's functions       ├── pinned.rs       pinned memory, if asked for
//!                                                        ├── contexts.rs     a pinlane Device for each context
//!     settings.rs   environment; start and end           ├── captures.rs     graphs are left alone
//!     process.rs    of the process; its counters         └── trace/          every call, its time and its caller
//! ```
//!
//! **Same bytes, same order.** A wrapper does what libcuda documents for the call. Where anything is not understood
//! (the kind of memory, the context, a capture, an error, a panic) it makes the plain call instead, whose result the
//! program gets.
//!
//! **Own calls are not wrapped.** The library opens a `Device` in the program's context by libcuda's own functions
//! (`Cuda::from_loaded`), so nothing it does comes back here.
//!
//! Usable by hand: `LD_PRELOAD=libpinlane_boost.so PINLANE_BOOST_STATS=1 python train.py`. The variables are in
//! `pinlane_boost_files::variables`.
//!
//! Only x86-64 Linux: elsewhere the library is empty.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod calls;
mod captures;
mod contexts;
mod copies;
mod interpose;
mod pinned;
mod process;
mod settings;
mod trace;

//! The pool: what it hands out, when it takes it back, and that nothing is left of it.

mod device_pool;
mod limits;
mod reuse;
mod support;
mod threads;

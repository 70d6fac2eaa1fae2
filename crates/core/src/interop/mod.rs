//! Memory and streams shared with other libraries, without copying.

pub mod cudarc;

//! One module per command.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod compare;
pub(crate) mod doctor;
pub(crate) mod dot;
pub(crate) mod feed;
pub(crate) mod load;
pub(crate) mod manual;
pub(crate) mod overlap;
pub(crate) mod plan;
pub(crate) mod selftest;

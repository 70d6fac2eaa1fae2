//! What the formats share: rows, shades, ticks, colours, and text that is safe to show.

pub(super) mod palette;
pub(super) mod rows;
pub(crate) mod scale;
pub(super) mod shade;
pub(crate) mod words;

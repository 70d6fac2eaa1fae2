//! Where things lie in a trace file. Everything is a 64-bit word in the machine's byte order.

use super::event::EVENT_WORDS;

/// Stands in [`Header::Format`] of a file with this layout.
pub(super) const FORMAT: u64 = 0x7069_6e74_7261_0002;

/// Events that are stored one by one. All are counted.
pub const MAX_EVENTS: usize = 200_000;

/// Call sites that have totals of their own. The first one stands for all sites beyond.
pub(super) const MAX_SITES: usize = 4096;

/// Bytes for the text of all sites.
pub(super) const TEXT_BYTES: usize = 2 << 20;

/// Words of the header.
#[derive(Clone, Copy)]
pub(super) enum Header {
    /// The layout's version; 0 while the file is being made.
    Format,
    /// The system's number of the process.
    Process,
    /// When the file was made.
    StartNs,
    /// Calls seen, stored or not.
    Events,
    /// Sites in use; may exceed the table.
    Sites,
    /// Bytes of text in use; may exceed the area.
    TextBytes,
    /// Whether Python lines are known.
    Python,
    /// When the process ended; 0 if it has not, or was killed.
    EndNs,
    /// Place of the command line in the text.
    Command,
}

pub(super) const HEADER_WORDS: usize = 64;

/// Words of a site.
#[derive(Clone, Copy)]
pub(super) enum SiteWord {
    /// What its calls do; 0 while it is being made.
    Key,
    /// Place of its text.
    Text,
    Calls,
    Bytes,
    Ns,
    LongestNs,
    Failures,
    /// Result of a call that failed.
    FailureCode,
    LastNs,
}

pub(super) const SITE_WORDS: usize = 16;

pub(super) const SITES_AT: usize = HEADER_WORDS;
pub(super) const TEXT_AT: usize = SITES_AT + MAX_SITES * SITE_WORDS;
pub(super) const EVENTS_AT: usize = TEXT_AT + TEXT_BYTES / 8;
pub(super) const ALL_WORDS: usize = EVENTS_AT + MAX_EVENTS * EVENT_WORDS;

/// A place in the text: offset and length.
pub(super) fn pack_place(offset: usize, length: usize) -> u64 {
    (offset as u64) << 32 | length as u64
}

pub(super) fn unpack_place(place: u64) -> (usize, usize) {
    ((place >> 32) as usize, place as u32 as usize)
}

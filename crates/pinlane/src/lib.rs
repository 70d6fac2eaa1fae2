//! Pinned memory, safe by construction.

//! Link profiles and what a copy costs.

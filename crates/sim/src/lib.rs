//! A simulated GPU behind Pinlane's driver trait.

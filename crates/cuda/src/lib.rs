//! The CUDA driver behind Pinlane's driver trait.

//! The simulated GPU under libcuda's own names.

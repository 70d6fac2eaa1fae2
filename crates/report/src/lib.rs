//! Measurements as data, rendered to text and JSON.

//! Environment variables that configure the preloaded library.

/// `0` turns the library off: every call is the driver's own.
pub const BOOST: &str = "PINLANE_BOOST";

/// `1` prints at the end of each process what was gained. The tool prints it instead where it runs the program.
pub const STATS: &str = "PINLANE_BOOST_STATS";

/// A folder in which each process leaves a counter file.
pub const FOLDER: &str = "PINLANE_BOOST_FOLDER";

/// `1` serves pinned memory instead of the driver.
pub const PINNING: &str = "PINLANE_BOOST_PINNING";

/// `0` keeps programs that the program starts from loading the library.
pub const CHILDREN: &str = "PINLANE_BOOST_CHILDREN";

/// A folder in which each process leaves a trace of its copies, pinned memory and waits.
pub const TRACE_FOLDER: &str = "PINLANE_TRACE_FOLDER";

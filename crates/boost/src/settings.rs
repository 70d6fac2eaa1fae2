//! What the environment asks for.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use pinlane_boost_files::variables;

/// The settings of this process.
pub(crate) struct Settings {
    /// Whether anything is done.
    pub boost: bool,
    /// Whether pinned memory is served.
    pub pinning: bool,
    /// Whether to print at the end what was gained.
    pub stats: bool,
    /// Whether programs that this one starts load the library, too.
    pub children: bool,
    /// Where the counters go.
    pub folder: Option<PathBuf>,
    /// Where the trace goes; `None` for no trace.
    pub trace_folder: Option<PathBuf>,
}

impl Settings {
    pub(crate) fn from_environment() -> Self {
        Self::parse(|name| env::var_os(name))
    }

    fn parse(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let is = |name, value: &str| variable(name).is_some_and(|found| found == value);
        Self {
            boost: !is(variables::BOOST, "0"),
            pinning: is(variables::PINNING, "1"),
            stats: is(variables::STATS, "1"),
            children: !is(variables::CHILDREN, "0"),
            folder: variable(variables::FOLDER).map(PathBuf::from),
            trace_folder: variable(variables::TRACE_FOLDER).map(PathBuf::from),
        }
    }
}

//! Which place of the program makes a call.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pinlane_boost_files::trace::{SiteKey, TraceFile};

use super::native_stack::NativeStack;
use super::python_stack::{self, PythonKey};

/// What tells places apart. Python's own native frames differ from call to call of one line, so they do not count.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Caller {
    Python(PythonKey),
    Native([usize; 6]),
}

/// Index of each site in the file.
static SITES: Mutex<Option<HashMap<(Caller, SiteKey), u32>>> = Mutex::new(None);

/// The index of the caller's site. Its frames are named when it calls for the first time.
pub(super) fn index(file: &TraceFile, key: SiteKey) -> u32 {
    let caller = match python_stack::key() {
        Some(key) => Caller::Python(key),
        None => Caller::Native(NativeStack::key()),
    };
    let mut sites = SITES.lock().unwrap_or_else(PoisonError::into_inner);
    let sites = sites.get_or_insert_default();
    *sites.entry((caller, key)).or_insert_with(|| {
        let mut frames = match caller {
            Caller::Python(_) => python_stack::frames(),
            Caller::Native(_) => Vec::new(),
        };
        frames.extend(NativeStack::frames());
        file.add_site(key, &frames)
    })
}

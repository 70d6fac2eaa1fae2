//! Which place of the program makes a call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinlane_boost_files::trace::{Frame, SiteKey, TraceFile};

use super::native_stack::NativeStack;
use super::python_stack::{self, PythonKey};

/// What tells places apart. Python's own native frames differ from call to call of one line, so they do not count.
#[allow(
    clippy::large_enum_variant,
    reason = "made for each call, so without an allocation"
)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Caller {
    Python(PythonKey),
    Native([usize; 6]),
}

/// A place in the program, with its names.
pub(super) struct CallSite {
    caller: Caller,
    frames: Arc<Vec<Frame>>,
}

/// The places that have made calls.
static CALLERS: Mutex<Option<HashMap<Caller, Arc<Vec<Frame>>>>> = Mutex::new(None);

/// More places are not told apart.
const CALLERS_AT_MOST: usize = 4096;

/// Index of each site in the file.
static SITES: Mutex<Option<HashMap<(Caller, SiteKey), u32>>> = Mutex::new(None);

impl CallSite {
    /// The place of the call that is being made. Its frames are named when it calls for the first time; no lock is held
    /// meanwhile, since names come from the loader, which has a lock of its own.
    pub(super) fn find() -> Option<Self> {
        let caller = match python_stack::key() {
            Some(key) => Caller::Python(key),
            None => Caller::Native(NativeStack::key()),
        };
        let known = |callers: &HashMap<_, _>| (callers.get(&caller).cloned(), callers.len());
        let (found, count) = known(lock(&CALLERS).get_or_insert_default());
        let frames = match found {
            Some(frames) => frames,
            None if count >= CALLERS_AT_MOST => return None,
            None => {
                let frames = Arc::new(named(caller));
                let mut callers = lock(&CALLERS);
                let callers = callers.get_or_insert_default();
                Arc::clone(callers.entry(caller).or_insert(frames))
            }
        };
        Some(Self { caller, frames })
    }
}

fn named(caller: Caller) -> Vec<Frame> {
    let mut frames = match caller {
        Caller::Python(_) => python_stack::frames(),
        Caller::Native(_) => Vec::new(),
    };
    frames.extend(NativeStack::frames());
    frames
}

/// The index of a site in the file; 0 stands for all places that are not told apart.
pub(super) fn index(file: &TraceFile, site: Option<CallSite>, key: SiteKey) -> u32 {
    let Some(CallSite { caller, frames }) = site else {
        return 0;
    };
    let mut sites = lock(&SITES);
    let sites = sites.get_or_insert_default();
    let entry = sites.entry((caller, key));
    *entry.or_insert_with(|| file.add_site(key, &frames))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

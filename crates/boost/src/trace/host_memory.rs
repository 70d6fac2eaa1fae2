//! The kind of host memory at an address. The driver says whether it is page-locked; how it became so is known from the
//! program's calls.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pinlane_boost_files::trace::{HostMemory, Operation};

use super::RecordedCall;
use crate::calls::SUCCESS;
use crate::contexts::functions;
use crate::copies::{self, Kind};

/// Flag of `cuMemHostAlloc`.
const WRITE_COMBINED: u32 = 4;

/// Page-locked memory of the program, by its address.
static RANGES: Mutex<BTreeMap<u64, Range>> = Mutex::new(BTreeMap::new());

#[derive(Clone, Copy)]
struct Range {
    bytes: u64,
    memory: HostMemory,
}

fn ranges() -> MutexGuard<'static, BTreeMap<u64, Range>> {
    RANGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kind of memory at an address of the host.
pub(super) fn kind(address: u64) -> HostMemory {
    let kind = functions().and_then(|functions| copies::kind(functions, address));
    match kind {
        Some(Kind::Pageable) => HostMemory::Pageable,
        Some(Kind::Managed) => HostMemory::Managed,
        Some(Kind::PageLocked) => known(address).unwrap_or(HostMemory::Pinned),
        Some(Kind::Device { .. }) | None => HostMemory::Unknown,
    }
}

/// Whether an address is in host memory; `None` if the driver does not answer. Managed memory counts as the device's.
pub(super) fn is_on_host(address: u64) -> Option<bool> {
    let kind = functions().and_then(|functions| copies::kind(functions, address))?;
    Some(matches!(kind, Kind::Pageable | Kind::PageLocked))
}

fn known(address: u64) -> Option<HostMemory> {
    let ranges = ranges();
    let (start, range) = ranges.range(..=address).next_back()?;
    (address - start < range.bytes).then_some(range.memory)
}

/// Follows what the program allocates and registers, and completes the calls that do.
pub(super) fn update(mut call: RecordedCall, result: u32) -> RecordedCall {
    match call.operation {
        Operation::Allocate => {
            call.memory = match call.flags & WRITE_COMBINED {
                0 => HostMemory::Pinned,
                _ => HostMemory::WriteCombined,
            };
            if result == SUCCESS && !call.result_at.is_null() {
                // SAFETY: the driver has stored the address there.
                call.host = unsafe { *call.result_at }.addr() as u64;
                insert(call);
            }
        }
        Operation::Register => {
            call.memory = HostMemory::Registered;
            if result == SUCCESS {
                insert(call);
            }
        }
        Operation::Free | Operation::Unregister => {
            let mut ranges = ranges();
            let found = match result {
                SUCCESS => ranges.remove(&call.host),
                // What the program tried to free says what is wrong.
                _ => ranges.get(&call.host).copied(),
            };
            if let Some(range) = found {
                (call.bytes, call.memory) = (range.bytes, range.memory);
            }
        }
        _ => (),
    }
    call
}

fn insert(call: RecordedCall) {
    let range = Range {
        bytes: call.bytes,
        memory: call.memory,
    };
    ranges().insert(call.host, range);
}

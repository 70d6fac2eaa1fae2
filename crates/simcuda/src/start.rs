//! What a program calls first, and small calls that belong nowhere else.

use std::cell::Cell;

use crate::error::{INVALID_VALUE, NOT_FOUND, UNKNOWN};
use crate::ffi::{In, Out};
use crate::settings::settings;
use crate::shim::exports;
use crate::state::{initialize, machine};

thread_local! {
    /// How this thread's captures treat other threads. There are no captures here; it is kept
    /// since programs set it and set it back.
    static CAPTURE_MODE: Cell<u32> = const { Cell::new(0) };
}

exports! { through always;
    /// Makes the simulated machine.
    fn cuInit(flags: u32) {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        initialize()
    }

    /// The version that the driver offers. Answers before `cuInit`.
    fn cuDriverGetVersion(version: Out<i32>) {
        let slot = version.required()?;
        slot.put(settings().map_err(|_| UNKNOWN)?.version as i32);
        Ok(())
    }

    /// Tables of undocumented calls: there are none.
    fn cuGetExportTable(table: Out<usize>, _id: In<[u8; 16]>) {
        table.required()?.put(0);
        Err(NOT_FOUND)
    }
}

exports! { through guard;
    /// Begins profiling, which shows nothing here.
    fn cuProfilerStart() {
        machine()?;
        Ok(())
    }

    /// Ends profiling.
    fn cuProfilerStop() {
        machine()?;
        Ok(())
    }

    /// Swaps the thread's capture mode.
    fn cuThreadExchangeStreamCaptureMode(mode: Out<u32>) {
        machine()?;
        let slot = mode.required()?;
        let wanted = slot.peek();
        if wanted > 2 {
            return Err(INVALID_VALUE);
        }
        slot.put(CAPTURE_MODE.replace(wanted));
        Ok(())
    }
}

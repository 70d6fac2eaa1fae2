//! Initialisation, version, profiler control and capture mode.

use std::cell::Cell;

use crate::error::{INVALID_VALUE, NOT_FOUND, UNKNOWN};
use crate::exports::exports;
use crate::ffi::{In, Out};
use crate::machine::{initialize, machine};
use crate::settings::settings;

thread_local! {
    /// The thread's capture mode. Captures are not supported, but programs set and restore it.
    static CAPTURE_MODE: Cell<u32> = const { Cell::new(0) };
}

exports! { through always;
    /// Creates the simulated machine.
    fn cuInit(flags: u32) {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        initialize()
    }

    /// The driver's version. Works before `cuInit`.
    fn cuDriverGetVersion(version: Out<i32>) {
        let slot = version.required()?;
        slot.put(settings().map_err(|_| UNKNOWN)?.version as i32);
        Ok(())
    }

    /// Tables of undocumented functions: there are none.
    fn cuGetExportTable(table: Out<usize>, _id: In<[u8; 16]>) {
        table.required()?.put(0);
        Err(NOT_FOUND)
    }
}

exports! { through guard;
    /// Starts the profiler, which does nothing.
    fn cuProfilerStart() {
        machine()?;
        Ok(())
    }

    /// Stops the profiler.
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

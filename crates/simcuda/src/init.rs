//! Initialisation, version, profiler control and capture mode.

use std::cell::Cell;

use crate::c_pointers::Out;
use crate::error::{INVALID_VALUE, NOT_FOUND, UNKNOWN, ensure};
use crate::export_macros::exports;
use crate::machine::{initialize, machine};
use crate::settings::settings;

thread_local! {
    /// The thread's capture mode. Captures are not supported, but programs set and restore it.
    static CAPTURE_MODE: Cell<u32> = const { Cell::new(0) };
}

exports! { through always;
    /// Creates the simulated machine.
    fn cuInit(flags: u32) {
        ensure(flags == 0, INVALID_VALUE)?;
        initialize()
    }

    /// The driver's version. Works before `cuInit`.
    fn cuDriverGetVersion(version: Out<i32>) {
        version.set_with(|| Ok(settings().map_err(|_| UNKNOWN)?.version as i32))
    }

    /// Tables of undocumented functions: there are none.
    fn cuGetExportTable(table: Out<usize>) {
        table.set(0)?;
        Err(NOT_FOUND)
    }
}

exports! { through guard;
    /// Starts and stops the profiler, which does nothing.
    fn cuProfilerStop(), also cuProfilerStart { machine().map(|_| ()) }

    /// Swaps the thread's capture mode.
    fn cuThreadExchangeStreamCaptureMode(mode: Out<u32>) {
        machine()?;
        let slot = mode.required()?;
        let wanted = slot.peek();
        ensure(wanted <= 2, INVALID_VALUE)?;
        slot.put(CAPTURE_MODE.replace(wanted));
        Ok(())
    }
}

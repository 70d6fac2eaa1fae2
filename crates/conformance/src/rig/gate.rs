//! A closed gate in a stream.

use std::sync::mpsc::{Receiver, Sender, channel};

use pinlane_driver::{Result, StreamHandle};

use super::Rig;

/// While it exists, no later work in the stream runs. Dropping it opens it, also in a panic.
///
/// A driver may run all callbacks on one thread, so a case closes one gate at a time and does not
/// wait for another callback meanwhile. It creates and loads what it needs before, since such calls
/// may wait for the device. It does not launch kernels behind a closed gate, since under a memory
/// checker each launch waits for the whole device; copies do the job as well.
pub(crate) struct Gate {
    _closed: Sender<()>,
}

impl Gate {
    /// Lets the stream continue.
    pub(crate) fn open(self) {}
}

impl Rig {
    /// Calls `call` after the work that is now in the stream. It does not call the driver.
    pub(crate) fn callback(
        &self,
        stream: StreamHandle,
        call: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Result<()> {
        self.assert_stream(stream);
        // SAFETY: the stream is live, and callbacks of cases use only channels, counters and locks.
        unsafe { self.host_callback(stream, Box::new(call)) }
    }

    /// Closes a gate after the work that is now in the stream.
    pub(crate) fn gate(&self, stream: StreamHandle) -> Result<Gate> {
        let (closed, opened): (Sender<()>, Receiver<()>) = channel();
        self.callback(stream, move |_| {
            // Returns an error when the gate is dropped.
            let _ = opened.recv();
        })?;
        Ok(Gate { _closed: closed })
    }
}

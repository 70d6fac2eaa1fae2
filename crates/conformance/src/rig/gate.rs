//! A closed gate in a stream.

use std::sync::mpsc::{Receiver, Sender, channel};

use pinlane_driver::{Result, StreamHandle};

use super::Rig;

/// While it exists, no later work of the stream runs. Dropping it opens it, also in a panic.
///
/// A driver may run all callbacks on one thread, so a case closes one gate at a time and waits for
/// no other callback meanwhile. It makes and loads all that it needs before: such calls may wait
/// for the device. Nor does it launch kernels with the gate closed: under a memory checker each
/// launch waits for the whole device. Copies do as well.
pub(crate) struct Gate {
    _closed: Sender<()>,
}

impl Gate {
    /// Let the stream go on.
    pub(crate) fn open(self) {}
}

impl Rig {
    /// Close a gate behind the work that the stream holds now.
    pub(crate) fn gate(&self, stream: StreamHandle) -> Result<Gate> {
        let (closed, opened): (Sender<()>, Receiver<()>) = channel();
        self.driver().host_callback(
            stream,
            // Ends with an error as soon as the gate is dropped.
            Box::new(move |_| {
                let _ = opened.recv();
            }),
        )?;
        Ok(Gate { _closed: closed })
    }
}

//! Host callbacks, called in stream order on a thread of the simulator.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};

use pinlane_driver::{Call, Error, HostCallback, Result};

use crate::machine_lock::Machine;
use crate::slab::Id;

/// A callback that its stream has reached.
pub(crate) struct DueCallback {
    callback: HostCallback,
    result: Result<()>,
    /// The stream that waits for it; `None` after a failure.
    stream: Option<Id>,
}

impl DueCallback {
    /// Calls it. The stream continues even if it panics.
    fn run(self) {
        let call = Call::HostCallback.name();
        let result = self.result.map_err(|error| Error { call, ..error });
        // The panic hook has reported it. The payload is leaked: dropping it could panic again,
        // which would end this thread.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| (self.callback)(result))) {
            std::mem::forget(payload);
        }
    }
}

/// Callbacks of all streams.
#[derive(Default)]
pub(crate) struct Callbacks {
    due: VecDeque<DueCallback>,
    /// Called and not returned.
    running: usize,
    /// Submitted, and not completed by their stream.
    pub(crate) pending: usize,
    worker: Option<Sender<Message>>,
}

enum Message {
    /// There may be something to do.
    Wake,
    /// The machine was dropped; these are the last.
    Last(VecDeque<DueCallback>),
}

impl Callbacks {
    /// Queues a callback that its stream has reached.
    pub(crate) fn enqueue(
        &mut self,
        callback: HostCallback,
        result: Result<()>,
        stream: Option<Id>,
    ) {
        self.due.push_back(DueCallback {
            callback,
            result,
            stream,
        });
    }

    /// Whether queued callbacks have not returned.
    pub(crate) fn outstanding(&self) -> bool {
        self.running > 0 || !self.due.is_empty()
    }

    /// Wakes the thread, if it has something to do.
    pub(crate) fn wake_worker(&self) {
        if let Some(worker) = &self.worker
            && (self.pending > 0 || !self.due.is_empty())
        {
            // The thread outlives the machine, so the message arrives.
            let _ = worker.send(Message::Wake);
        }
    }

    /// Starts the thread, once.
    pub(crate) fn start_worker(&mut self, machine: &Arc<Machine>) {
        if self.worker.is_some() {
            return;
        }
        let (sender, inbox) = channel();
        let machine = Arc::downgrade(machine);
        std::thread::Builder::new()
            .name("pinlane-sim-callbacks".into())
            .spawn(move || work(&machine, &inbox))
            .expect("the system can start a thread");
        self.worker = Some(sender);
    }

    /// Lets the thread call what is left, and end.
    pub(crate) fn close(&mut self) {
        if let Some(worker) = self.worker.take()
            && !self.due.is_empty()
        {
            let _ = worker.send(Message::Last(std::mem::take(&mut self.due)));
        }
    }
}

/// The thread. It does not keep the machine alive, and ends with it.
fn work(machine: &Weak<Machine>, inbox: &Receiver<Message>) {
    for message in inbox {
        match message {
            Message::Wake => {
                if let Some(machine) = machine.upgrade() {
                    run_callbacks(&machine);
                }
            }
            Message::Last(due) => due.into_iter().for_each(DueCallback::run),
        }
    }
}

/// Calls what is due. If time may pass on its own, lets it pass until all callbacks were called.
fn run_callbacks(machine: &Machine) {
    let mut state = machine.lock();
    loop {
        if let Some(due) = state.callbacks.due.pop_front() {
            let stream = due.stream;
            state.callbacks.running += 1;
            drop(state);
            due.run();
            state = machine.lock();
            state.callbacks.running -= 1;
            if let Some(stream) = stream {
                state.callback_returned(stream);
            }
        } else if !(state.config.idle_progress && state.callbacks.pending > 0 && state.step()) {
            return;
        }
        machine.wake_sleepers(&state);
    }
}

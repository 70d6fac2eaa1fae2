//! Host callbacks: handed out in stream order, called on a thread of the simulator's.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};

use pinlane_driver::{Call, Error, HostCallback, Result};

use crate::calls::name;
use crate::machine::Machine;
use crate::slab::Id;

/// A callback whose turn has come.
pub(crate) struct Due {
    callback: HostCallback,
    result: Result<()>,
    /// The stream that waits for it; none after a failure.
    stream: Option<Id>,
}

impl Due {
    /// Calls it. A panic in it stays in it: the stream goes on.
    fn run(self) {
        let Self {
            callback, result, ..
        } = self;
        let result = result.map_err(|error| Error {
            call: name(Call::HostCallback),
            ..error
        });
        // The panic hook has told about it; there is nobody here to pass it on to. Its payload may
        // panic when it is dropped, which would end this thread.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| callback(result))) {
            std::mem::forget(payload);
        }
    }
}

/// Callbacks of all streams.
#[derive(Default)]
pub(crate) struct Callbacks {
    due: VecDeque<Due>,
    /// Called and not returned.
    out: usize,
    /// Submitted, and not passed by their stream.
    pub(crate) pending: usize,
    worker: Option<Sender<Message>>,
}

enum Message {
    /// There may be something to do.
    Look,
    /// The machine is gone; these are the last.
    Last(VecDeque<Due>),
}

impl Callbacks {
    /// Queues a callback whose turn has come.
    pub(crate) fn hand_out(
        &mut self,
        callback: HostCallback,
        result: Result<()>,
        stream: Option<Id>,
    ) {
        self.due.push_back(Due {
            callback,
            result,
            stream,
        });
    }

    /// Whether callbacks were handed out that have not returned.
    pub(crate) fn outstanding(&self) -> bool {
        self.out > 0 || !self.due.is_empty()
    }

    /// Wakes the thread, if there is something to do for it.
    pub(crate) fn nudge(&self) {
        if let Some(worker) = &self.worker
            && (self.pending > 0 || !self.due.is_empty())
        {
            // It ends only after the machine, so the message arrives.
            let _ = worker.send(Message::Look);
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

    /// Has all that is left called, and lets the thread end.
    pub(crate) fn close(&mut self) {
        if let Some(worker) = self.worker.take()
            && !self.due.is_empty()
        {
            let _ = worker.send(Message::Last(std::mem::take(&mut self.due)));
        }
    }
}

/// The thread: it does not keep the machine alive, and ends with it.
fn work(machine: &Weak<Machine>, inbox: &Receiver<Message>) {
    for message in inbox {
        match message {
            Message::Look => {
                if let Some(machine) = machine.upgrade() {
                    run_callbacks(&machine);
                }
            }
            Message::Last(due) => due.into_iter().for_each(Due::run),
        }
    }
}

/// Calls what is due; where time may pass by itself, lets it pass until all callbacks had their
/// turn.
fn run_callbacks(machine: &Machine) {
    let mut state = machine.lock();
    loop {
        if let Some(due) = state.callbacks.due.pop_front() {
            let stream = due.stream;
            state.callbacks.out += 1;
            drop(state);
            due.run();
            state = machine.lock();
            state.callbacks.out -= 1;
            if let Some(stream) = stream {
                state.callback_returned(stream);
            }
        } else if !(state.config.idle_progress && state.callbacks.pending > 0 && state.step()) {
            return;
        }
        machine.wake_sleepers(&state);
    }
}

//! One notification from the driver's thread to a task.

use std::task::{Context, Poll, Waker};

use crate::sync::{Mutex, lock};

/// Carries one value from whoever completes to the task that polls.
pub(crate) struct Completion<R> {
    state: Mutex<State<R>>,
}

enum State<R> {
    Pending(Option<Waker>),
    Done(R),
    Taken,
}

impl<R> Completion<R> {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State::Pending(None)),
        }
    }

    /// Keep the value, and give out the waker of the task that polled last. Only the first call
    /// counts.
    #[must_use = "the task must be woken"]
    pub(crate) fn complete(&self, value: R) -> Option<Waker> {
        let mut state = lock(&self.state);
        match &mut *state {
            State::Pending(waker) => {
                let waker = waker.take();
                *state = State::Done(value);
                waker
            }
            State::Done(_) | State::Taken => None,
        }
    }

    /// The value, or a promise to wake the task.
    ///
    /// # Panics
    /// When the value was taken before.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<R> {
        // Cloned before the lock is taken, and the old one dropped after: both are code of the
        // user's, which may do anything.
        let mut mine = Some(context.waker().clone());
        let mut state = lock(&self.state);
        match &mut *state {
            State::Pending(waker) => {
                std::mem::swap(waker, &mut mine);
                drop(state);
                drop(mine);
                Poll::Pending
            }
            State::Done(_) => match std::mem::replace(&mut *state, State::Taken) {
                State::Done(value) => Poll::Ready(value),
                State::Pending(_) | State::Taken => unreachable!("matched above"),
            },
            State::Taken => panic!("polled again after it was ready"),
        }
    }
}

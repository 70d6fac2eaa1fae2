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

    /// Keep the value and wake the task that polled last. Only the first call counts.
    pub(crate) fn complete(&self, value: R) {
        let waker = {
            let mut state = lock(&self.state);
            match &mut *state {
                State::Pending(waker) => {
                    let waker = waker.take();
                    *state = State::Done(value);
                    waker
                }
                State::Done(_) | State::Taken => None,
            }
        };
        // Outside of the lock: a waker may poll right here.
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The value, or a promise to wake the task.
    ///
    /// # Panics
    /// When the value was taken before.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<R> {
        let mut state = lock(&self.state);
        match &mut *state {
            State::Pending(waker) => {
                match waker {
                    Some(known) if known.will_wake(context.waker()) => {}
                    _ => *waker = Some(context.waker().clone()),
                }
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

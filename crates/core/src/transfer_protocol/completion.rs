//! One notification from the driver's thread to a task.

use std::task::{Context, Poll, Waker};

use crate::sync::{Mutex, lock};

/// Carries one value from the completing thread to the task that polls.
pub(crate) struct Completion<R> {
    state: Mutex<State<R>>,
}

enum State<R> {
    Pending(Option<Waker>),
    /// `None` once it was returned.
    Done(Option<R>),
}

impl<R> Completion<R> {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State::Pending(None)),
        }
    }

    /// Stores the value and returns the waker of the task that polled last. Only the first call has an
    /// effect.
    #[must_use = "the task must be woken"]
    pub(crate) fn complete(&self, value: R) -> Option<Waker> {
        let mut state = lock(&self.state);
        let State::Pending(waker) = &mut *state else {
            return None;
        };
        let waker = waker.take();
        *state = State::Done(Some(value));
        waker
    }

    /// Returns the value, or registers the task to be woken.
    ///
    /// # Panics
    /// If the value was already taken.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<R> {
        // Clone before taking the lock, and drop the old one after releasing it: both run user code, which
        // may do anything.
        let mut mine = Some(context.waker().clone());
        let mut state = lock(&self.state);
        match &mut *state {
            State::Pending(waker) => {
                std::mem::swap(waker, &mut mine);
                drop(state);
                drop(mine);
                Poll::Pending
            }
            State::Done(value) => {
                Poll::Ready(value.take().expect("polled again after it was ready"))
            }
        }
    }
}

//! The stack of contexts that each thread has, and the calls that change it.

use std::cell::RefCell;
use std::sync::Arc;

use crate::context::Context;
use crate::error::{CONTEXT_IS_DESTROYED, INVALID_CONTEXT, OUT_OF_MEMORY, Outcome};
use crate::ffi::Out;
use crate::shim::exports;
use crate::state::machine;

/// Most contexts that one thread can have pushed.
const DEPTH: usize = 64;

/// Handles of contexts, the current one on top. Without a destructor, so that it can still be used
/// when a thread ends and others' thread-local values are being dropped.
struct Stack {
    handles: [usize; DEPTH],
    depth: usize,
}

thread_local! {
    static STACK: RefCell<Stack> = const {
        RefCell::new(Stack { handles: [0; DEPTH], depth: 0 })
    };
}

/// The context that this thread's calls go to.
pub fn current() -> Outcome<Arc<Context>> {
    let machine = machine()?;
    let handle = top().ok_or(INVALID_CONTEXT)?;
    machine
        .contexts
        .find(handle)
        .map_err(|_| CONTEXT_IS_DESTROYED)
}

/// The context that `handle` names, or for 0 the current one.
pub fn context_or_current(handle: usize) -> Outcome<Arc<Context>> {
    match handle {
        0 => current(),
        handle => machine()?
            .contexts
            .find(handle)
            .map_err(|_| INVALID_CONTEXT),
    }
}

/// Puts a context on top.
pub fn push(handle: usize) -> Outcome<()> {
    STACK.with_borrow_mut(|stack| {
        let depth = stack.depth;
        *stack.handles.get_mut(depth).ok_or(OUT_OF_MEMORY)? = handle;
        stack.depth += 1;
        Ok(())
    })
}

/// Takes the top off.
pub fn pop() -> Option<usize> {
    STACK.with_borrow_mut(|stack| {
        stack.depth = stack.depth.checked_sub(1)?;
        Some(stack.handles[stack.depth])
    })
}

/// The handle on top.
fn top() -> Option<usize> {
    STACK.with_borrow(|stack| Some(stack.handles[stack.depth.checked_sub(1)?]))
}

exports! { through guard;
    /// Makes a context current, in place of the one on top; 0 takes the top off.
    fn cuCtxSetCurrent(context: usize) {
        let machine = machine()?;
        if context != 0 {
            machine.contexts.find(context).map_err(|_| INVALID_CONTEXT)?;
        }
        pop();
        if context == 0 { Ok(()) } else { push(context) }
    }

    /// The current context, or 0.
    fn cuCtxGetCurrent(context: Out<usize>) {
        machine()?;
        context.required()?.put(top().unwrap_or(0));
        Ok(())
    }

    /// Puts a context on top of the thread's stack.
    fn cuCtxPushCurrent_v2(context: usize) {
        machine()?.contexts.find(context).map_err(|_| INVALID_CONTEXT)?;
        push(context)
    }

    /// Takes the top of the thread's stack off.
    fn cuCtxPopCurrent_v2(context: Out<usize>) {
        machine()?;
        let popped = pop().ok_or(INVALID_CONTEXT)?;
        if let Some(slot) = context.optional() {
            slot.put(popped);
        }
        Ok(())
    }
}

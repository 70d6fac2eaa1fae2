//! The stack of contexts of each thread.

use std::cell::RefCell;
use std::sync::Arc;

use crate::context::Context;
use crate::error::{CONTEXT_IS_DESTROYED, INVALID_CONTEXT, OUT_OF_MEMORY, Outcome};
use crate::exports::exports;
use crate::ffi::Out;
use crate::machine::machine;

/// Largest depth of a stack.
const DEPTH: usize = 64;

/// Handles of contexts, the current one on top. It has no destructor, so that it can be used while a
/// thread ends and drops other thread-local values.
struct Stack {
    handles: [usize; DEPTH],
    depth: usize,
}

thread_local! {
    static STACK: RefCell<Stack> = const {
        RefCell::new(Stack { handles: [0; DEPTH], depth: 0 })
    };
}

/// The current context of this thread.
pub fn current() -> Outcome<Arc<Context>> {
    let machine = machine()?;
    let handle = top().ok_or(INVALID_CONTEXT)?;
    machine
        .contexts
        .find(handle)
        .map_err(|_| CONTEXT_IS_DESTROYED)
}

/// The context of `handle`, or the current one for 0.
pub fn context_or_current(handle: usize) -> Outcome<Arc<Context>> {
    match handle {
        0 => current(),
        handle => machine()?
            .contexts
            .find(handle)
            .map_err(|_| INVALID_CONTEXT),
    }
}

/// Pushes a context.
pub fn push(handle: usize) -> Outcome<()> {
    STACK.with_borrow_mut(|stack| {
        let depth = stack.depth;
        *stack.handles.get_mut(depth).ok_or(OUT_OF_MEMORY)? = handle;
        stack.depth += 1;
        Ok(())
    })
}

/// Pops the current context.
pub fn pop() -> Option<usize> {
    STACK.with_borrow_mut(|stack| {
        stack.depth = stack.depth.checked_sub(1)?;
        Some(stack.handles[stack.depth])
    })
}

/// The handle of the current context.
fn top() -> Option<usize> {
    STACK.with_borrow(|stack| Some(stack.handles[stack.depth.checked_sub(1)?]))
}

exports! { through guard;
    /// Replaces the top of the stack; 0 pops it.
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
        context.set(top().unwrap_or(0))
    }

    /// Pushes a context.
    fn cuCtxPushCurrent_v2(context: usize) {
        machine()?.contexts.find(context).map_err(|_| INVALID_CONTEXT)?;
        push(context)
    }

    /// Pops the current context.
    fn cuCtxPopCurrent_v2(context: Out<usize>) {
        machine()?;
        let popped = pop().ok_or(INVALID_CONTEXT)?;
        context.set_optional(popped);
        Ok(())
    }
}

//! What a panic said.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(super) fn text(panic: Box<dyn Any + Send>) -> String {
    let says = panic.downcast_ref::<&str>().copied();
    let says = says.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let says = says.unwrap_or("no text").to_owned();
    // It is the user's, and may panic again.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
    says
}

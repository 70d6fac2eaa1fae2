//! Messages of caught panics.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(crate) fn text(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("no text").to_owned();
    // The payload is the user's, and dropping it may panic again.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
    text
}

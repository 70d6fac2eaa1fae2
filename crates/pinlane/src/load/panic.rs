//! What a panic said.

use std::any::Any;

pub(super) fn text(panic: &(dyn Any + Send)) -> String {
    let says = panic.downcast_ref::<&str>().copied();
    let says = says.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    says.unwrap_or("no text").to_owned()
}

//! Pointers as C passes them, each with a type that says what it is for.
//!
//! They have the layout of a plain pointer and only occur as arguments of exported functions. As
//! the driver's documentation demands, the C caller passes null or a pointer that is valid for the
//! call. Null is checked here; the rest cannot be.

use std::ffi::{CStr, c_char};
use std::ptr::NonNull;

use pinlane_driver::HostPtr;

use crate::error::{INVALID_VALUE, Outcome, ensure};

/// Where to store a result; may be null.
#[repr(transparent)]
pub struct Out<T>(*mut T);

/// Where to store a result; not null.
pub struct Slot<T>(NonNull<T>);

/// One or more values to read.
#[repr(transparent)]
pub struct In<T>(*const T);

/// A NUL-terminated string to read.
#[repr(transparent)]
pub struct Text(*const c_char);

/// Host memory of a copy or a registration.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Host(*mut u8);

/// An untyped pointer that is only passed on.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Opaque(*mut u8);

// SAFETY: it is never dereferenced here. It goes back to the program, which expects it on the
// driver's callback thread.
unsafe impl Send for Opaque {}

impl<T> Out<T> {
    /// The place; null is an error.
    pub fn required(self) -> Outcome<Slot<T>> {
        NonNull::new(self.0).map(Slot).ok_or(INVALID_VALUE)
    }

    /// Stores the result; null is an error.
    pub fn set(self, value: T) -> Outcome<()> {
        self.set_with(|| Ok(value))
    }

    /// Stores the result of `make`, which is not called if the place is null.
    pub fn set_with(self, make: impl FnOnce() -> Outcome<T>) -> Outcome<()> {
        let slot = self.required()?;
        slot.put(make()?);
        Ok(())
    }

    /// Stores the result, unless the place is null.
    pub fn set_optional(self, value: T) {
        if let Ok(slot) = self.required() {
            slot.put(value);
        }
    }
}

impl Out<u8> {
    /// Writes `text` and a NUL, truncated to `capacity` bytes.
    pub fn put_text(self, capacity: i32, text: &str) -> Outcome<()> {
        let slot = self.required()?;
        let capacity = usize::try_from(capacity).map_err(|_| INVALID_VALUE)?;
        let length_max = capacity.checked_sub(1).ok_or(INVALID_VALUE)?;
        let length = text.len().min(length_max);
        // SAFETY: the caller passes a buffer of `capacity` bytes, which is at least `length + 1`.
        unsafe {
            let source = NonNull::from(text.as_bytes()).cast();
            slot.0.copy_from_nonoverlapping(source, length);
            slot.0.add(length).write(0);
        }
        Ok(())
    }
}

impl<T> Slot<T> {
    /// Stores the result.
    pub fn put(self, value: T) {
        // SAFETY: the caller passes a pointer to a result of this type. Unaligned, because C does
        // not guarantee Rust's alignment.
        unsafe { self.0.write_unaligned(value) }
    }
}

impl<T: Copy> Slot<T> {
    /// The value before the call.
    pub fn peek(&self) -> T {
        // SAFETY: used for in-out arguments, which the caller has initialised.
        unsafe { self.0.read_unaligned() }
    }
}

impl<T: Copy> In<T> {
    /// The first value.
    pub fn read(&self) -> Outcome<T> {
        self.read_at(0)
    }

    /// The n-th value of an array.
    pub fn read_at(&self, index: usize) -> Outcome<T> {
        ensure(!self.is_null(), INVALID_VALUE)?;
        // SAFETY: not null, and the caller passes an array of at least the count it gave.
        // Unaligned as above.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    /// `count` values. Null is valid if there are none.
    pub fn list(&self, count: usize) -> Outcome<Vec<T>> {
        (0..count).map(|index| self.read_at(index)).collect()
    }

    /// Whether the pointer is null.
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }
}

impl In<u8> {
    /// The bytes up to the first NUL.
    pub fn text_bytes(&self) -> Outcome<Vec<u8>> {
        Text(self.0.cast()).bytes()
    }
}

impl Text {
    /// The string's bytes.
    pub fn bytes(&self) -> Outcome<Vec<u8>> {
        ensure(!self.0.is_null(), INVALID_VALUE)?;
        // SAFETY: not null, and the caller passes a NUL-terminated string.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes().to_vec())
    }

    /// The string, which must be UTF-8.
    pub fn read(&self) -> Outcome<String> {
        String::from_utf8(self.bytes()?).map_err(|_| INVALID_VALUE)
    }
}

impl Host {
    /// The address; null is an error.
    pub fn required(self) -> Outcome<HostPtr> {
        self.optional().ok_or(INVALID_VALUE)
    }

    /// The address, unless it is null.
    pub fn optional(self) -> Option<HostPtr> {
        HostPtr::new(self.0)
    }

    /// Host memory at a numeric address.
    pub fn at(address: u64) -> Self {
        Self(std::ptr::with_exposed_provenance_mut(address as usize))
    }

    /// The numeric address.
    pub fn address(self) -> u64 {
        self.0.expose_provenance() as u64
    }
}

/// Reads `T` from an untyped address, such as an element of a kernel's parameter array.
pub fn read_untyped<T: Copy>(from: Opaque) -> Outcome<T> {
    In::<T>(from.0.cast_const().cast()).read()
}

/// Stores an untyped value, such as an attribute whose width depends on its number.
pub fn put_untyped<T>(to: Opaque, value: T) -> Outcome<()> {
    Out::<T>(to.0.cast()).set(value)
}

impl Opaque {
    /// The pointer as a number, for options that pass a number in a pointer.
    pub fn number(self) -> usize {
        self.0.addr()
    }

    /// The pointer as a text buffer.
    pub fn text_out(self) -> Out<u8> {
        Out(self.0)
    }

    /// The pointer plus `bytes`.
    pub fn offset(self, bytes: usize) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

//! Pointers as C passes them, each with a type that says what it is for.
//!
//! They have the layout of a plain pointer and come into being only as arguments of exported
//! functions. There the C caller owes what the driver's documentation demands: null, or a pointer
//! that is valid for the call. Null is checked here; the rest cannot be.

use std::ffi::{CStr, c_char};
use std::ptr::NonNull;

use pinlane_driver::HostPtr;

use crate::error::{Code, INVALID_VALUE, Outcome};

/// A place for one result.
#[repr(transparent)]
pub struct Out<T>(*mut T);

/// A result's place that is not null.
pub struct Slot<T>(NonNull<T>);

/// One or more values to read.
#[repr(transparent)]
pub struct In<T>(*const T);

/// A NUL-terminated string to read.
#[repr(transparent)]
pub struct Text(*const c_char);

/// Host memory that a copy or a registration names.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Host(*mut u8);

/// An untyped pointer that is only handed on.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Opaque(*mut u8);

// SAFETY: it is never followed here; it goes back to the program that passed it, which expects it
// on the driver's callback thread.
unsafe impl Send for Opaque {}

impl<T> Out<T> {
    /// The place, or the error that null is.
    pub fn required(self) -> Outcome<Slot<T>> {
        self.optional().ok_or(INVALID_VALUE)
    }

    /// The place, unless it is null.
    pub fn optional(self) -> Option<Slot<T>> {
        NonNull::new(self.0).map(Slot)
    }
}

impl Out<u8> {
    /// Writes `text` with a NUL behind it, cut to `capacity` bytes in all.
    pub fn put_text(self, capacity: i32, text: &str) -> Outcome<()> {
        let slot = self.required()?;
        let capacity = usize::try_from(capacity).map_err(|_| INVALID_VALUE)?;
        if capacity == 0 {
            return Err(INVALID_VALUE);
        }
        let length = text.len().min(capacity - 1);
        // SAFETY: the caller passes a buffer of `capacity` bytes, and `length + 1` is no more.
        unsafe {
            slot.0
                .copy_from_nonoverlapping(NonNull::from(text.as_bytes()).cast(), length);
            slot.0.add(length).write(0);
        }
        Ok(())
    }
}

impl<T> Slot<T> {
    /// Stores the result.
    pub fn put(self, value: T) {
        // SAFETY: the caller passes a pointer to a result of this type; C does not promise Rust's
        // alignment, hence unaligned.
        unsafe { self.0.write_unaligned(value) }
    }
}

impl<T: Copy> Slot<T> {
    /// What lies there before the call.
    pub fn peek(&self) -> T {
        // SAFETY: used for arguments that go in and out, which the caller has filled.
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
        if self.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: not null, and the caller passes an array that is long enough for the count it
        // gave; unaligned as above.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    /// `count` values. Null is fine where there are none.
    pub fn list(&self, count: usize) -> Outcome<Vec<T>> {
        (0..count).map(|index| self.read_at(index)).collect()
    }

    /// Whether nothing was passed.
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
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: not null, and the caller passes a string that ends with NUL.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes().to_vec())
    }

    /// The string, which must be UTF-8.
    pub fn read(&self) -> Outcome<String> {
        String::from_utf8(self.bytes()?).map_err(|_| INVALID_VALUE)
    }
}

impl Host {
    /// The address, or the error that null is.
    pub fn required(self) -> Outcome<HostPtr> {
        HostPtr::new(self.0).ok_or(INVALID_VALUE)
    }

    /// The address, unless it is null.
    pub fn optional(self) -> Option<HostPtr> {
        HostPtr::new(self.0)
    }

    /// Host memory at an address that came as a number.
    pub fn at(address: u64) -> Self {
        Self(std::ptr::with_exposed_provenance_mut(address as usize))
    }

    /// The address as a number.
    pub fn address(self) -> u64 {
        self.0.expose_provenance() as u64
    }
}

/// Reads `T` from an untyped address, such as an element of a kernel's parameter array.
pub fn read_untyped<T: Copy>(from: Opaque) -> Result<T, Code> {
    In::<T>(from.0.cast_const().cast()).read()
}

/// Stores an untyped value, such as an attribute whose width depends on its number.
pub fn put_untyped<T>(to: Opaque, value: T) -> Outcome<()> {
    Out::<T>(to.0.cast()).required()?.put(value);
    Ok(())
}

impl Opaque {
    /// The pointer's number: for options that pass a number in a pointer.
    pub fn number(self) -> usize {
        self.0.addr()
    }

    /// The same place as a buffer of text.
    pub fn text_out(self) -> Out<u8> {
        Out(self.0)
    }

    /// The place `bytes` further on.
    pub fn offset(self, bytes: usize) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

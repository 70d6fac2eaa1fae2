//! One input, or several.

use bytemuck::Pod;

use super::input::IntoInput;
use super::load::Feed;
use pinlane_core::memory::DeviceSlice;
use pinlane_core::{Error, Result};

/// The inputs of a run: one, or a tuple of up to four. Each has the same number of items.
pub trait Inputs<'a> {
    /// A chunk of each, on the device.
    type Slices<'s>;

    #[doc(hidden)]
    fn into_feeds(self) -> Result<Vec<Feed<'a>>>;

    #[doc(hidden)]
    fn slices<'s>(slices: &[DeviceSlice<'s, u8>]) -> Self::Slices<'s>;
}

impl<'a, I: IntoInput<'a>> Inputs<'a> for I {
    type Slices<'s> = DeviceSlice<'s, I::Item>;

    fn into_feeds(self) -> Result<Vec<Feed<'a>>> {
        Ok(vec![self.into_input().into_feed()?])
    }

    fn slices<'s>(slices: &[DeviceSlice<'s, u8>]) -> Self::Slices<'s> {
        typed(slices, 0)
    }
}

macro_rules! tuples {
    ($($name:ident $index:tt)*) => {
        impl<'a, $($name: IntoInput<'a>),*> Inputs<'a> for ($($name,)*) {
            type Slices<'s> = ($(DeviceSlice<'s, $name::Item>,)*);

            #[allow(non_snake_case)]
            fn into_feeds(self) -> Result<Vec<Feed<'a>>> {
                let ($($name,)*) = self;
                let feeds = vec![$($name.into_input().into_feed()?),*];
                agree(&feeds)?;
                Ok(feeds)
            }

            fn slices<'s>(slices: &[DeviceSlice<'s, u8>]) -> Self::Slices<'s> {
                ($(typed(slices, $index),)*)
            }
        }
    };
}

tuples!(A 0 B 1);
tuples!(A 0 B 1 C 2);
tuples!(A 0 B 1 C 2 D 3);

fn typed<'s, T: Pod>(slices: &[DeviceSlice<'s, u8>], index: usize) -> DeviceSlice<'s, T> {
    slices[index].cast()
}

/// Inputs whose length is known have the same number of items.
fn agree(feeds: &[Feed<'_>]) -> Result<()> {
    let mut known = feeds.iter().filter_map(Feed::known_items);
    let Some(first) = known.next() else {
        return Ok(());
    };
    match known.find(|&items| items != first) {
        Some(other) => Err(Error::InputsDiffer {
            items: first,
            other_items: other,
        }),
        None => Ok(()),
    }
}

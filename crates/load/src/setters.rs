//! Consuming setters for public configurations.

/// One setter for each field, with the field's name.
macro_rules! setters {
    ($($field:ident: $type:ty),+ $(,)?) => {$(
        #[doc = concat!("Sets [`", stringify!($field), "`](field@Self::", stringify!($field), ").")]
        #[must_use]
        pub fn $field(mut self, $field: $type) -> Self {
            self.$field = $field;
            self
        }
    )+};
}

pub(crate) use setters;

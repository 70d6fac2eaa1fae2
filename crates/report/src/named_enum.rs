//! Enums whose variants have names.

/// Defines an enum with `ALL`, its variants in order, and `name`, the string after each of them.
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        pub enum $type:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $name:literal,)+
        }
    ) => {
        $(#[$meta])*
        pub enum $type {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $type {
            /// All of them, in the order in which they are shown.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name that users see.
            #[must_use]
            pub fn name(self) -> &'static str {
                [$($name),+][self as usize]
            }
        }
    };
}

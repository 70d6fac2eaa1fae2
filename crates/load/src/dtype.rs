//! Element types.

use std::fmt;

use pinlane_kernels::convert::FloatKind;

/// Defines `Dtype` from one table: variant, name in safetensors files, bits.
macro_rules! dtypes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $bits:literal;)*) => {
        /// Type of a tensor's elements: all types of the safetensors format, little-endian.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum Dtype {
            $($(#[$doc])* $variant,)*
        }

        impl Dtype {
            /// All types.
            pub const ALL: [Self; [$($bits),*].len()] = [$(Self::$variant),*];

            /// The name in safetensors files.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Bits per element; some types take less than a byte.
            pub const fn bits(self) -> u64 {
                match self {
                    $(Self::$variant => $bits,)*
                }
            }
        }
    };
}

dtypes! {
    /// A byte that is 0 or 1.
    Bool = "BOOL", 8;
    /// 4-bit float of the microscaling formats, two in a byte.
    F4 = "F4", 4;
    /// 6-bit float with 2 bits of exponent, four in three bytes.
    F6E2M3 = "F6_E2M3", 6;
    /// 6-bit float with 3 bits of exponent, four in three bytes.
    F6E3M2 = "F6_E3M2", 6;
    /// Unsigned byte.
    U8 = "U8", 8;
    /// Signed byte.
    I8 = "I8", 8;
    /// 8-bit float with 5 bits of exponent.
    F8E5M2 = "F8_E5M2", 8;
    /// 8-bit float with 4 bits of exponent.
    F8E4M3 = "F8_E4M3", 8;
    /// 8-bit exponent, the scale of a block in the microscaling formats.
    F8E8M0 = "F8_E8M0", 8;
    /// 8-bit float with 4 bits of exponent, one zero and one NaN.
    F8E4M3Fnuz = "F8_E4M3FNUZ", 8;
    /// 8-bit float with 5 bits of exponent, one zero and one NaN.
    F8E5M2Fnuz = "F8_E5M2FNUZ", 8;
    /// Signed 16-bit integer.
    I16 = "I16", 16;
    /// Unsigned 16-bit integer.
    U16 = "U16", 16;
    /// Half precision.
    F16 = "F16", 16;
    /// Brain float: the upper half of an `f32`.
    Bf16 = "BF16", 16;
    /// Signed 32-bit integer.
    I32 = "I32", 32;
    /// Unsigned 32-bit integer.
    U32 = "U32", 32;
    /// Single precision.
    F32 = "F32", 32;
    /// Complex number of two `f32`.
    C64 = "C64", 64;
    /// Double precision.
    F64 = "F64", 64;
    /// Signed 64-bit integer.
    I64 = "I64", 64;
    /// Unsigned 64-bit integer.
    U64 = "U64", 64;
}

impl Dtype {
    /// The float kind, for types that can be converted.
    pub(super) const fn float_kind(self) -> Option<FloatKind> {
        match self {
            Self::F16 => Some(FloatKind::F16),
            Self::Bf16 => Some(FloatKind::Bf16),
            Self::F32 => Some(FloatKind::F32),
            Self::F64 => Some(FloatKind::F64),
            _ => None,
        }
    }

    /// The float kinds of a conversion; `None` if elements of this type stay as they are.
    pub(super) fn conversion_to(self, to: Self) -> Option<(FloatKind, FloatKind)> {
        let kinds = self.float_kind().zip(to.float_kind());
        kinds.filter(|(from, to)| from != to)
    }

    /// The type with this name, as safetensors files spell it.
    ///
    /// ```
    /// use pinlane::load::Dtype;
    ///
    /// assert_eq!(Dtype::from_name("BF16"), Some(Dtype::Bf16));
    /// assert_eq!(Dtype::from_name("bf16"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }
}

/// Bytes per element before and after a conversion; both 1 if there is none.
pub(crate) fn element_bytes(kinds: Option<(FloatKind, FloatKind)>) -> (u64, u64) {
    let (from, to) = kinds.map_or((1, 1), |(from, to)| (from.bytes(), to.bytes()));
    (from as u64, to as u64)
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

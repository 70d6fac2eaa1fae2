//! Colours: one hue a kind, two shades a hue, the same in every format.
//!
//! The hues are those of Okabe and Ito, which people with any kind of colour blindness tell apart.

use super::shade::Shade;
use crate::colour::Colour;
use crate::timeline::SpanKind;

/// The colour of a kind.
pub(crate) fn colour(kind: SpanKind, shade: Shade) -> Colour {
    let strong = Colour::new(match kind {
        SpanKind::HostWork => [0xcc, 0x79, 0xa7],
        SpanKind::Staging => [0xe6, 0x9f, 0x00],
        SpanKind::HostToDevice => [0x00, 0x72, 0xb2],
        SpanKind::Kernel => [0x00, 0x9e, 0x73],
        SpanKind::DeviceToHost => [0xd5, 0x5e, 0x00],
        SpanKind::Memset => [0xf0, 0xe4, 0x42],
        SpanKind::DeviceToDevice => [0x56, 0xb4, 0xe9],
        SpanKind::Wait => [0x8a, 0x91, 0x99],
    });
    match shade {
        Shade::Strong => strong,
        Shade::Soft => strong.soft(),
    }
}

/// The nearest colour of a terminal with 256 of them.
pub(crate) fn terminal(kind: SpanKind, shade: Shade) -> u8 {
    let (strong, soft) = match kind {
        SpanKind::HostWork => (175, 218),
        SpanKind::Staging => (178, 222),
        SpanKind::HostToDevice => (32, 74),
        SpanKind::Kernel => (36, 79),
        SpanKind::DeviceToHost => (166, 209),
        SpanKind::Memset => (221, 229),
        SpanKind::DeviceToDevice => (75, 117),
        SpanKind::Wait => (245, 250),
    };
    match shade {
        Shade::Strong => strong,
        Shade::Soft => soft,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_shades_of_all_kinds_are_the_same() {
        let mut seen = Vec::new();
        for kind in SpanKind::ALL {
            for shade in [Shade::Strong, Shade::Soft] {
                let colour = colour(kind, shade);
                assert!(!seen.contains(&colour), "{kind:?} {shade:?}");
                seen.push(colour);
            }
        }
    }
}

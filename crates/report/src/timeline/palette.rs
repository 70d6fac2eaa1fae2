//! Colours of span kinds, in two shades; the same in every format.
//!
//! The Okabe-Ito palette is distinguishable with every kind of colour blindness.

use super::SpanKind;
use super::rows::Shade;
use crate::colour::Colour;

pub(crate) fn colour(kind: SpanKind, shade: Shade) -> Colour {
    let strong = Colour(kind_colours(kind).0);
    match shade {
        Shade::Strong => strong,
        Shade::Soft => strong.soft(),
    }
}

/// The nearest of a terminal's 256 colours.
pub(crate) fn terminal_colour(kind: SpanKind, shade: Shade) -> u8 {
    kind_colours(kind).1[shade as usize]
}

/// The strong colour, and both shades in a terminal.
fn kind_colours(kind: SpanKind) -> ([u8; 3], [u8; 2]) {
    match kind {
        SpanKind::HostWork => ([0xcc, 0x79, 0xa7], [175, 218]),
        SpanKind::Staging => ([0xe6, 0x9f, 0x00], [178, 222]),
        SpanKind::HostToDevice => ([0x00, 0x72, 0xb2], [32, 74]),
        SpanKind::Kernel => ([0x00, 0x9e, 0x73], [36, 79]),
        SpanKind::DeviceToHost => ([0xd5, 0x5e, 0x00], [166, 209]),
        SpanKind::Memset => ([0xf0, 0xe4, 0x42], [221, 229]),
        SpanKind::DeviceToDevice => ([0x56, 0xb4, 0xe9], [75, 117]),
        SpanKind::Wait => ([0x8a, 0x91, 0x99], [245, 250]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_shades_of_all_kinds_differ() {
        let mut seen = Vec::new();
        for kind in SpanKind::ALL {
            for shade in Shade::ALL {
                let colour = colour(kind, shade);
                assert!(!seen.contains(&colour), "{kind:?} {shade:?}");
                seen.push(colour);
            }
        }
    }
}

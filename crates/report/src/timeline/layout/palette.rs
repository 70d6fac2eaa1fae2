//! Colours: one hue a kind, two shades a hue, the same in every format.
//!
//! The hues are those of Okabe and Ito, which people with any kind of colour blindness tell apart.

use super::shade::Shade;
use crate::timeline::SpanKind;

/// Red, green, blue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Colour([u8; 3]);

impl Colour {
    /// As CSS and SVG write it.
    pub(crate) fn hex(self) -> String {
        let [red, green, blue] = self.0;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }

    /// Black or white, whichever is the easier to read on this colour.
    pub(crate) fn ink(self) -> Self {
        let luminance = self.luminance();
        // The ratio of contrast, as the web's guidelines for accessibility define it.
        let on_white = 1.05 / (luminance + 0.05);
        let on_black = (luminance + 0.05) / 0.05;
        if on_white > on_black {
            Self([255; 3])
        } else {
            Self([0; 3])
        }
    }

    fn luminance(self) -> f64 {
        let linear = self.0.map(|channel| {
            let value = f64::from(channel) / 255.0;
            if value <= 0.04045 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }

    /// Three fifths of the colour, two fifths of white.
    fn soft(self) -> Self {
        Self(self.0.map(|channel| 102 + channel / 5 * 3))
    }
}

/// The colour of a kind.
pub(crate) fn colour(kind: SpanKind, shade: Shade) -> Colour {
    let strong = Colour(match kind {
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

    #[test]
    fn ink_can_be_read() {
        assert_eq!(Colour([0, 0, 0]).ink(), Colour([255; 3]));
        assert_eq!(Colour([255, 255, 255]).ink(), Colour([0; 3]));
        let blue = colour(SpanKind::HostToDevice, Shade::Strong);
        assert_eq!(blue.ink(), Colour([255; 3]));
        assert_eq!(blue.hex(), "#0072b2");
    }
}

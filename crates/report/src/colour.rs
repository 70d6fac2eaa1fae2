//! Colours, and readable text on them.

/// Red, green, blue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Colour(pub(crate) [u8; 3]);

impl Colour {
    /// In CSS and SVG notation.
    pub(crate) fn hex(self) -> String {
        let [red, green, blue] = self.0;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }

    /// Black or white, whichever is easier to read on this colour.
    pub(crate) fn ink(self) -> Self {
        let luminance = self.luminance();
        // Contrast ratio as defined by WCAG.
        let on_white = 1.05 / (luminance + 0.05);
        let on_black = (luminance + 0.05) / 0.05;
        Self([if on_white > on_black { 255 } else { 0 }; 3])
    }

    pub(crate) fn luminance(self) -> f64 {
        let [red, green, blue] = self.linear();
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    /// Linear light.
    pub(crate) fn linear(self) -> [f64; 3] {
        self.0.map(|channel| {
            let value = f64::from(channel) / 255.0;
            match value <= 0.04045 {
                true => value / 12.92,
                false => ((value + 0.055) / 1.055).powf(2.4),
            }
        })
    }

    /// Mixed with 40% of a dark page.
    pub(crate) fn muted(self) -> Self {
        Self(self.0.map(|channel| 8 + channel / 5 * 3))
    }

    /// Mixed with 40% white.
    pub(crate) fn soft(self) -> Self {
        Self(self.0.map(|channel| 102 + channel / 5 * 3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ink_is_readable() {
        assert_eq!(Colour([0, 0, 0]).ink(), Colour([255; 3]));
        assert_eq!(Colour([255, 255, 255]).ink(), Colour([0; 3]));
        let blue = Colour([0x00, 0x72, 0xb2]);
        assert_eq!(blue.ink(), Colour([255; 3]));
        assert_eq!(blue.hex(), "#0072b2");
    }
}

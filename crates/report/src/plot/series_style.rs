//! How series differ: by colour, marker shape and dashes, so that no reader depends on one of them.
//!
//! The colours derive from the Okabe-Ito palette, adjusted until each pair stays distinguishable with
//! every kind of colour blindness, on white and on black.

use crate::MemoryKind;
use crate::colour::Colour;
use crate::markup::{SvgElements, point};

/// Colour, marker and dashes of one series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SeriesStyle {
    Grey,
    Blue,
    Green,
    Pink,
    Ochre,
    Vermilion,
}

impl SeriesStyle {
    /// In the order of the [kinds of memory](MemoryKind) that they stand for.
    pub(crate) const ALL: [Self; 6] = [
        Self::Grey,
        Self::Blue,
        Self::Green,
        Self::Pink,
        Self::Ochre,
        Self::Vermilion,
    ];

    /// The style of a kind of memory in all pictures.
    pub(crate) fn of(memory: MemoryKind) -> Self {
        Self::ALL[memory as usize]
    }

    /// CSS class.
    pub(crate) fn class(self) -> &'static str {
        ["h0", "h1", "h2", "h3", "h4", "h5"][self as usize]
    }

    /// On white and on black.
    pub(crate) fn colours(self) -> [Colour; 2] {
        match self {
            Self::Grey => [[0x5c, 0x66, 0x70], [0x7b, 0x85, 0x91]],
            Self::Blue => [[0x00, 0x72, 0xb2], [0x4a, 0xa3, 0xe8]],
            Self::Green => [[0x00, 0xa0, 0x6b], [0x1b, 0xa8, 0x68]],
            Self::Pink => [[0xcf, 0x70, 0x9f], [0xe0, 0x9c, 0xc0]],
            Self::Ochre => [[0x63, 0x45, 0x00], [0xf0, 0xdc, 0x5a]],
            Self::Vermilion => [[0xd5, 0x5e, 0x00], [0xff, 0x7a, 0x2e]],
        }
        .map(Colour)
    }

    /// Lines on top of others have gaps that show those.
    pub(crate) fn dashes(self) -> &'static str {
        match self {
            Self::Grey | Self::Blue | Self::Vermilion => "none",
            Self::Green => "9 6",
            Self::Pink => "3 5",
            Self::Ochre => "12 4 3 4",
        }
    }

    /// Draws the marker of a point.
    pub(crate) fn marker(self, x_px: f64, y_px: f64, svg: &mut SvgElements) {
        let class = format!("mark {}", self.class());
        let corners: &[(f64, f64)] = match self {
            Self::Grey => return svg.circle(&class, x_px, y_px, 3.2),
            Self::Vermilion => return svg.circle(&class, x_px, y_px, 4.2),
            Self::Blue => &[(-3.5, -3.5), (3.5, -3.5), (3.5, 3.5), (-3.5, 3.5)],
            Self::Green => &[(0.0, -4.8), (4.4, 3.4), (-4.4, 3.4)],
            Self::Pink => &[(0.0, 4.8), (4.4, -3.4), (-4.4, -3.4)],
            Self::Ochre => &[(0.0, -4.8), (4.8, 0.0), (0.0, 4.8), (-4.8, 0.0)],
        };
        let corners = corners.iter().map(|(dx, dy)| point(x_px + dx, y_px + dy));
        let corners: Vec<String> = corners.collect();
        svg.path(&class, &format!("M{}Z", corners.join("L")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Colour perception of full sight, and without one kind of cones (Machado, Oliveira and
    /// Fernandes, 2009).
    const EYES: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ];

    fn product(matrix: &[[f64; 3]; 3], vector: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
    }

    /// In CIE Lab, where distances match perception.
    fn lab(light: [f64; 3]) -> [f64; 3] {
        const TO_XYZ: [[f64; 3]; 3] = [
            [0.4124, 0.3576, 0.1805],
            [0.2126, 0.7152, 0.0722],
            [0.0193, 0.1192, 0.9505],
        ];
        let [x, y, z] = product(&TO_XYZ, light.map(|part| part.clamp(0.0, 1.0)));
        let [x, y, z] = [x / 0.95047, y, z / 1.08883].map(|part| match part > 0.008856 {
            true => part.cbrt(),
            false => 7.787 * part + 16.0 / 116.0,
        });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    #[test]
    fn styles_differ_for_every_kind_of_sight() {
        for (index, style) in SeriesStyle::ALL.iter().enumerate() {
            for other in &SeriesStyle::ALL[..index] {
                for (eye, theme) in EYES.iter().flat_map(|eye| [(eye, 0), (eye, 1)]) {
                    let seen =
                        |style: &SeriesStyle| lab(product(eye, style.colours()[theme].linear()));
                    let pairs = seen(style).into_iter().zip(seen(other));
                    let apart = pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                    assert!(apart > 12.0, "{style:?} and {other:?}: {apart}");
                }
            }
        }
    }

    #[test]
    fn every_style_stands_out_from_its_page() {
        for style in SeriesStyle::ALL {
            let [on_white, on_black] = style.colours().map(Colour::luminance);
            let page = Colour([0x14, 0x17, 0x1b]).luminance();
            // The contrast that WCAG requires of graphics.
            assert!(1.05 / (on_white + 0.05) >= 3.0, "{style:?}");
            assert!((on_black + 0.05) / (page + 0.05) >= 3.0, "{style:?}");
        }
    }
}

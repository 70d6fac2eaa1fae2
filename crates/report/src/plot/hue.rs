//! Looks that tell series apart: by colour, by shape and by dashes, so that no reader depends on one.
//!
//! The colours come from those of Okabe and Ito, moved until each pair stays apart for every kind of
//! colour blindness, on white and on black.

use crate::MemoryKind;
use crate::colour::Colour;
use crate::markup::length;

/// The look of one series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hue {
    Grey,
    Blue,
    Green,
    Pink,
    Ochre,
    Vermilion,
}

impl Hue {
    pub(crate) const ALL: [Self; 6] = [
        Self::Grey,
        Self::Blue,
        Self::Green,
        Self::Pink,
        Self::Ochre,
        Self::Vermilion,
    ];

    /// The look that a kind of memory has in all pictures.
    pub(crate) fn of(memory: MemoryKind) -> Self {
        match memory {
            MemoryKind::Pageable => Self::Grey,
            MemoryKind::Pinned => Self::Blue,
            MemoryKind::Registered => Self::Green,
            MemoryKind::WriteCombined => Self::Pink,
            MemoryKind::Mapped => Self::Ochre,
            MemoryKind::Express => Self::Vermilion,
        }
    }

    /// Its class in style sheets.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Grey => "h0",
            Self::Blue => "h1",
            Self::Green => "h2",
            Self::Pink => "h3",
            Self::Ochre => "h4",
            Self::Vermilion => "h5",
        }
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
        .map(Colour::new)
    }

    /// Lines that lie on top of others have gaps through which those can be seen.
    pub(crate) fn dashes(self) -> &'static str {
        match self {
            Self::Grey | Self::Blue | Self::Vermilion => "none",
            Self::Green => "9 6",
            Self::Pink => "3 5",
            Self::Ochre => "12 4 3 4",
        }
    }

    /// The shape that marks a point.
    pub(crate) fn marker(self, x_px: f64, y_px: f64) -> String {
        let class = self.class();
        let at = |dx: f64, dy: f64| format!("{} {}", length(x_px + dx), length(y_px + dy));
        let path = |corners: &[(f64, f64)]| {
            let corners: Vec<String> = corners.iter().map(|(dx, dy)| at(*dx, *dy)).collect();
            format!(
                "<path class=\"mark {class}\" d=\"M{}Z\"/>",
                corners.join("L")
            )
        };
        match self {
            Self::Grey | Self::Vermilion => format!(
                "<circle class=\"mark {class}\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>",
                length(x_px),
                length(y_px),
                if self == Self::Grey { 3.2 } else { 4.2 },
            ),
            Self::Blue => path(&[(-3.5, -3.5), (3.5, -3.5), (3.5, 3.5), (-3.5, 3.5)]),
            Self::Green => path(&[(0.0, -4.8), (4.4, 3.4), (-4.4, 3.4)]),
            Self::Pink => path(&[(0.0, 4.8), (4.4, -3.4), (-4.4, -3.4)]),
            Self::Ochre => path(&[(0.0, -4.8), (4.8, 0.0), (0.0, 4.8), (-4.8, 0.0)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of light for full sight, and for eyes without one kind of cones (Machado,
    /// Oliveira and Fernandes, 2009).
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

    /// In CIE Lab, where distances are about as large as they look.
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
    fn no_eye_takes_one_hue_for_another() {
        for (index, hue) in Hue::ALL.iter().enumerate() {
            for other in &Hue::ALL[..index] {
                for eye in &EYES {
                    for look in [0, 1] {
                        let seen = |hue: &Hue| lab(product(eye, hue.colours()[look].linear()));
                        let pairs = seen(hue).into_iter().zip(seen(other));
                        let apart = pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                        assert!(apart > 12.0, "{hue:?} and {other:?}: {apart}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_hue_stands_out_from_its_page() {
        for hue in Hue::ALL {
            let [on_white, on_black] = hue.colours().map(Colour::luminance);
            let page = Colour::new([0x14, 0x17, 0x1b]).luminance();
            // What the web's guidelines for accessibility ask of graphics.
            assert!(1.05 / (on_white + 0.05) >= 3.0, "{hue:?}");
            assert!((on_black + 0.05) / (page + 0.05) >= 3.0, "{hue:?}");
        }
    }
}
